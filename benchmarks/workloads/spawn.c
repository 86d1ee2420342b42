/* The limit in C: start `/bin/sh -c :` COUNT times, one at a time, with its output through a pipe, and wait for each. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void run_once(void)
{
    char *argv[] = {"/bin/sh", "-c", ":", NULL};
    char output[65536];
    int ends[2];
    pid_t pid;
    siginfo_t info;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;

    if (pipe2(ends, O_CLOEXEC))
        exit(1);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    if (posix_spawn(&pid, argv[0], &actions, &attributes, argv, environ))
        exit(1);
    close(ends[1]);
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd watched = {.fd = pidfd, .events = POLLIN};
    while (poll(&watched, 1, -1) < 1)
        ;
    while (read(ends[0], output, sizeof output) > 0)
        ;
    waitid(P_PID, (id_t)pid, &info, WEXITED);
    close(pidfd);
    close(ends[0]);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (info.si_status)
        exit(1);
}

int main(int argc, char **argv)
{
    for (int count = argc > 1 ? atoi(argv[1]) : 0; count > 0; count--)
        run_once();
    return 0;
}
