/* The limit in C: start `/bin/sh -c :` COUNT times, one at a time, with its output through a pipe, and wait for each.
 *
 * By the quickest way there is: clone as queuectl's own module uses it, not posix_spawn, which takes some 15 us more.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char stack[65536] __attribute__((aligned(16)));
static int null_fd, ends[2];

static int become(void *given)
{
    char *argv[] = {"/bin/sh", "-c", ":", NULL};

    (void)given;
    if (setsid() >= 0 && dup2(null_fd, 0) == 0 && dup2(ends[1], 1) == 1 && dup2(ends[1], 2) == 2)
        execve(argv[0], argv, environ);
    _exit(127);
}

static void run_once(void)
{
    char output[65536];
    int pidfd;
    siginfo_t info;

    if (pipe2(ends, O_CLOEXEC))
        exit(1);
    pid_t pid = clone(become, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, NULL, &pidfd);
    if (pid < 0)
        exit(1);
    close(ends[1]);
    struct pollfd watched = {.fd = pidfd, .events = POLLIN};
    while (poll(&watched, 1, -1) < 1)
        ;
    while (read(ends[0], output, sizeof output) > 0)
        ;
    waitid(P_PID, (id_t)pid, &info, WEXITED);
    close(pidfd);
    close(ends[0]);
    if (info.si_status)
        exit(1);
}

int main(int argc, char **argv)
{
    null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int count = argc > 1 ? atoi(argv[1]) : 0; count > 0; count--)
        run_once();
    return 0;
}
