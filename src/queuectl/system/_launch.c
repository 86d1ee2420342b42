/* The start and the end of a plain command, each in one call. What Python does around the kernel's work otherwise takes
 * a tenth of the time of the smallest command (docs/adr/0023-a-compiled-launch.md). launch.py beside it is what the
 * program uses; where this was not built, process.py and output.py do the same step by step.
 */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif

#define VERSION 1 /* raised with every change that launch.py or a command can notice; there it stands, too */

enum { STACK_BYTES = 64 << 10, MOST_RECORD_BYTES = 1024 };

struct start {
    char **words; /* the first is the program */
    char **variables;
    const char *folder;
    const unsigned char *signals; /* those that are not as the kernel has them at the beginning; 0 ends it */
    int input;
    int output;
    int pidfd; /* what the kernel tells its end by */
    int has_failed;
};

/* The child, in the memory of its parent, which stands still until the child becomes the command or ends: it calls the
 * kernel and nothing else. By then the kernel has made what tells its end. Where it does not know that wish the child
 * becomes nothing: nobody could watch the command, and step by step it would begin a second time. */
static int become(void *given)
{
    struct start *start = given;
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (const unsigned char *number = start->signals; *number; number++)
        sigaction(*number, &usual, NULL);
    sigemptyset(&none);
    if (start->pidfd >= 0 && setsid() >= 0 && dup2(start->input, 0) == 0 && dup2(start->output, 1) == 1 &&
        dup2(start->output, 2) == 2 && chdir(start->folder) == 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0)
        execve(start->words[0], start->words, start->variables);
    start->has_failed = 1;
    _exit(127);
}

/* Start the command; returns its pid, or -1. One at a time. */
static pid_t start_command(struct start *start)
{
    static char stack[STACK_BYTES] __attribute__((aligned(16)));
    sigset_t all, before;
    pid_t pid;

    start->pidfd = -1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours may run in the child */
    pid = clone(become, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, start, &start->pidfd);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0 || !start->has_failed)
        return pid;
    if (start->pidfd >= 0)
        close(start->pidfd);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return -1;
}

/* Point at each entry of two texts, of which every entry ends with a NUL; NULL where there is no memory. */
static char **entries_of(char *shared, Py_ssize_t shared_size, char *own, Py_ssize_t own_size)
{
    size_t count = 0;
    char **entries, **next;

    for (Py_ssize_t at = 0; at < shared_size; at++)
        count += shared[at] == 0;
    for (Py_ssize_t at = 0; at < own_size; at++)
        count += own[at] == 0;
    next = entries = malloc((count + 3) * sizeof *entries); /* also where the last entry of each lacks its NUL */
    if (entries == NULL)
        return NULL;
    for (char *at = shared; at < shared + shared_size; at += strlen(at) + 1)
        *next++ = at;
    for (char *at = own; at < own + own_size; at += strlen(at) + 1)
        *next++ = at;
    *next = NULL;
    return entries;
}

/* Return text as the kernel takes it, in UTF-8 whatever the language here (process.encoded); `held` keeps it. NULL with
 * an exception where it cannot be given: half a character, a NUL. */
static char *text_of(PyObject *text, PyObject *held)
{
    PyObject *encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    char *bytes = NULL;

    if (encoded == NULL || PyList_Append(held, encoded) < 0 || PyBytes_AsStringAndSize(encoded, &bytes, NULL) < 0)
        bytes = NULL;
    Py_XDECREF(encoded);
    return bytes;
}

/* Point at each word; NULL with an exception where one cannot be given. */
static char **words_of(PyObject *argv, PyObject *held)
{
    Py_ssize_t count = PyList_Size(argv);
    char **words = malloc((size_t)(count + 1) * sizeof *words);

    if (words == NULL)
        return (char **)PyErr_NoMemory();
    for (Py_ssize_t number = 0; number < count; number++)
        if ((words[number] = text_of(PyList_GetItem(argv, number), held)) == NULL) {
            free(words);
            return NULL;
        }
    words[count] = NULL;
    return words;
}

/* Write down what will tell the command: what is known of it, and the number of its pipe, in a record of some size. */
static int note_start(int lock, off_t place, const char *known, Py_ssize_t known_size, Py_ssize_t size, int pipe)
{
    char record[MOST_RECORD_BYTES];
    struct stat about;
    int length;

    if (known_size >= size || size > MOST_RECORD_BYTES || fstat(pipe, &about) < 0)
        return 0;
    memcpy(record, known, (size_t)known_size);
    length = snprintf(record + known_size, (size_t)(size - known_size), "%llu", (unsigned long long)about.st_ino);
    if (known_size + length >= size)
        return 0;
    memset(record + known_size + length, ' ', (size_t)(size - known_size - length));
    record[size - 1] = '\n';
    return pwrite(lock, record, (size_t)size, place) == size;
}

/* Add the pid, and a moment at which it is surely the command's, as liveness.py writes both. */
static void note_pid(int lock, off_t place, pid_t pid)
{
    char words[64];
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    /* Rounded as %.3f does; not by it, for in some languages a comma would stand there. */
    long long now_ms = now.tv_sec * 1000LL + (now.tv_nsec + 500000) / 1000000;
    int length = snprintf(words, sizeof words, "%10d %12lld.%03lld", (int)pid, now_ms / 1000, now_ms % 1000);
    if (pwrite(lock, words, (size_t)length, place) != length)
        return; /* no space: what the command carries in its environment still tells it */
}

/* Wait until a command has ended, `others` have something to say, or the patience is at its end; 1: it has ended. */
static int wait_a_moment(int pidfd, int others, int patience_ms)
{
    struct pollfd watched[] = {{.fd = pidfd, .events = POLLIN}, {.fd = others, .events = POLLIN}};
    int is_over;

    if (patience_ms <= 0)
        return 0;
    Py_BEGIN_ALLOW_THREADS
    is_over = poll(watched, 2, patience_ms) > 0 && watched[0].revents != 0;
    Py_END_ALLOW_THREADS
    return is_over;
}

/* Read what waits in a pipe, and close it; NULL, without an exception and with the pipe open, where that cannot be.
 *
 * Never waits: the command may have made packets of its output, or left somebody behind who reads it, too. */
static PyObject *read_waiting(int output, int waiting)
{
    PyObject *printed = PyBytes_FromStringAndSize(NULL, waiting);
    int flags, got = 0;

    if (printed == NULL) {
        PyErr_Clear();
        return NULL;
    }
    if (waiting && ((flags = fcntl(output, F_GETFL)) < 0 || fcntl(output, F_SETFL, flags | O_NONBLOCK) < 0)) {
        Py_DECREF(printed);
        return NULL;
    }
    while (got < waiting) {
        ssize_t length = read(output, PyBytes_AsString(printed) + got, (size_t)(waiting - got));
        if (length < 0 && errno == EINTR)
            continue;
        if (length <= 0)
            break;
        got += (int)length;
    }
    if (got < waiting) {
        PyObject *shorter = PyBytes_FromStringAndSize(PyBytes_AsString(printed), got);
        Py_DECREF(printed);
        printed = shorter;
        if (printed == NULL) {
            PyErr_Clear();
            return NULL;
        }
    }
    close(output);
    return printed;
}

/* Collect a command that has ended and close what led to it; where more than `most` bytes of its output wait, they stay
 * in its pipe, which stays open. Once it is collected nothing fails: how it ended cannot be had again. */
static PyObject *collect(pid_t pid, int pidfd, int output, long long most)
{
    struct rusage usage;
    struct timespec now;
    PyObject *printed;
    int status, waiting = 0;

    clock_gettime(CLOCK_BOOTTIME, &now);
    pid_t found = wait4(pid, &status, WNOHANG, &usage);
    if (found < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    if (found == 0)
        Py_RETURN_NONE;
    close(pidfd);
    if (ioctl(output, FIONREAD, &waiting) < 0 || waiting > most || (printed = read_waiting(output, waiting)) == NULL)
        printed = Py_NewRef(Py_None);
    long long cpu_us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL + usage.ru_utime.tv_usec +
                       usage.ru_stime.tv_usec;
    return Py_BuildValue("iLlNd", status, cpu_us, usage.ru_maxrss, printed,
                         (double)now.tv_sec + (double)now.tv_nsec / 1e9);
}

PyDoc_STRVAR(launch_doc,
             "launch(argv, (shared, own), folder, signals, input, (lock, place, known, size), others, patience_ms, most)\n"
             "    -> (pid, pidfd, output, landed | None) | None\n\n"
             "Note a command whose first word is a path, start it with its output in a pipe, note its pid. None: it\n"
             "could not be, and nothing is left of the try; who does it step by step learns why. `landed` is what\n"
             "`land` returns, where it has ended before the patience, and before `others` had anything to be read.");

static PyObject *launch(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    char *shared, *own, *known;
    Py_ssize_t shared_size, own_size, known_size, size;
    PyObject *folder, *argv, *shared_bytes, *own_bytes, *signals, *known_bytes;
    PyObject *held, *landed, *launched = NULL;
    static int is_busy; /* there is one stack */
    struct start start = {0};
    long long place, most;
    int lock, others, patience_ms, ends[2] = {-1, -1};
    pid_t pid = -1;

    if (!PyArg_ParseTuple(arguments, "O!(SS)OSi(iLSn)iiL", &PyList_Type, &argv, &shared_bytes, &own_bytes, &folder,
                          &signals, &start.input, &lock, &place, &known_bytes, &size, &others, &patience_ms, &most))
        return NULL;
    held = PyList_New(0);
    if (held == NULL || PyBytes_AsStringAndSize(shared_bytes, &shared, &shared_size) < 0 ||
        PyBytes_AsStringAndSize(own_bytes, &own, &own_size) < 0 ||
        PyBytes_AsStringAndSize(known_bytes, &known, &known_size) < 0 ||
        (start.folder = text_of(folder, held)) == NULL || (start.words = words_of(argv, held)) == NULL)
        goto done;
    start.signals = (const unsigned char *)PyBytes_AsString(signals);
    start.variables = entries_of(shared, shared_size, own, own_size);
    if (start.variables != NULL && start.words[0] != NULL && strchr(start.words[0], '/') != NULL && !is_busy &&
        pipe2(ends, O_CLOEXEC) == 0) {
        start.output = ends[1];
        is_busy = 1;
        Py_BEGIN_ALLOW_THREADS /* a folder on a disk far away, or a slow one, holds up nobody else */
        /* Over its own streams the child would lose them, since they are to be closed when it becomes the command. */
        if (start.input > 2 && ends[0] > 2 && ends[1] > 2 &&
            note_start(lock, (off_t)place, known, known_size, size, ends[1]))
            pid = start_command(&start);
        if (pid >= 0)
            note_pid(lock, (off_t)place, pid);
        close(ends[1]);
        if (pid < 0)
            close(ends[0]);
        Py_END_ALLOW_THREADS
        is_busy = 0;
    }
    if (pid < 0) {
        launched = Py_NewRef(Py_None);
        goto done;
    }
    if (wait_a_moment(start.pidfd, others, patience_ms))
        landed = collect(pid, start.pidfd, ends[0], most);
    else
        landed = Py_NewRef(Py_None);
    if (landed != NULL)
        launched = Py_BuildValue("iiiN", (int)pid, start.pidfd, ends[0], landed);
done:
    if (launched == NULL && pid < 0 &&
        (PyErr_ExceptionMatches(PyExc_MemoryError) || PyErr_ExceptionMatches(PyExc_ValueError))) {
        PyErr_Clear();
        launched = Py_NewRef(Py_None);
    }
    free(start.words);
    free(start.variables);
    Py_XDECREF(held);
    return launched;
}

PyDoc_STRVAR(land_doc,
             "land(pid, pidfd, output, most) -> (status, cpu_us, peak_kib, printed | None, ended_s) | None\n\n"
             "Collect a command that has ended and close what led to it; None: it has not. Where it printed more than\n"
             "`most` bytes that wait in its pipe, that stays open, and `printed` is None.");

static PyObject *land(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    int pid, pidfd, output;
    long long most;

    if (!PyArg_ParseTuple(arguments, "iiiL", &pid, &pidfd, &output, &most))
        return NULL;
    return collect(pid, pidfd, output, most);
}

static PyMethodDef methods[] = {
    {"launch", launch, METH_VARARGS, launch_doc},
    {"land", land, METH_VARARGS, land_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_launch", .m_doc = "The start and the end of a plain command.", .m_size = 0,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__launch(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (module != NULL && PyModule_AddIntConstant(module, "VERSION", VERSION) < 0)
        Py_CLEAR(module);
    return module;
}
