/* The start and the end of plain commands, a call for each or one for a row of short ones. What Python does around the
 * kernel's work otherwise takes a fifth of the time of the smallest command (docs/adr/0023-a-compiled-launch.md). launch.py beside it is what the
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

#define VERSION 2 /* raised with every change that launch.py or a command can notice; there it stands, too */

enum { STACK_BYTES = 64 << 10, MOST_RECORD_BYTES = 1024, HEAD_BYTES = 512 };

struct start {
    char **words; /* the first is the program */
    char **variables;
    const char *folder;
    const unsigned char *signals; /* those that are not as the kernel has them at the beginning; 0 ends it */
    int input;
    int output;
    int pidfd; /* what the kernel tells its end by */
    int has_run;
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

    start->has_run = 1;
    for (const unsigned char *number = start->signals; *number; number++)
        sigaction(*number, &usual, NULL);
    sigemptyset(&none);
    if (start->pidfd >= 0 && setsid() >= 0 && dup2(start->input, 0) == 0 && dup2(start->output, 1) == 1 &&
        dup2(start->output, 2) == 2 && chdir(start->folder) == 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0)
        execve(start->words[0], start->words, start->variables);
    start->has_failed = 1;
    _exit(127);
}

/* Start the command; returns its pid, or -1. One at a time. A child of which nothing is seen here has a memory of its own
 * (an emulator made a fork of the call), and has ended: it knew of nothing that tells its end. */
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
    if (pid < 0 || (start->has_run && !start->has_failed))
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

/* Where a worker notes what it runs: a record of some size in a file, and how its runs ended in another, or nowhere. */
struct notes {
    int lock;
    long long place;
    int size;
    int ends; /* -1: how a run ended is noted by who called */
    int most_printed; /* of a run that printed more, too */
    int is_begun; /* whether a line of ours is in the latter */
};

/* A command that is over. */
struct landing {
    int status;
    long long cpu_us;
    long peak_kib;
    char *printed; /* NULL where its pipe stays open, for there is more than was asked for */
    int printed_size;
    struct timespec ended;
};

/* One of several that are begun one after the other. */
struct flight {
    struct start start;
    long long seq, run;
    pid_t pid;
    struct timespec begun;
    struct landing landing;
    enum { GROUNDED, UNDER_WAY, LANDED, NOTED } state;
};

/* Moments as liveness.py writes them, rounded as %.3f does; not by it, for in some languages a comma would stand there. */
#define MOMENT "%lld.%03lld"
#define WHOLE_S(moment) (milliseconds(moment) / 1000)
#define REST_MS(moment) (milliseconds(moment) % 1000)

static long long milliseconds(const struct timespec *moment)
{
    return moment->tv_sec * 1000LL + (moment->tv_nsec + 500000) / 1000000;
}

static double seconds(const struct timespec *moment)
{
    return (double)moment->tv_sec + (double)moment->tv_nsec / 1e9;
}

/* Write down what will tell the command: what is known of it, and the number of its pipe. */
static int note_start(const struct notes *notes, const struct flight *flight)
{
    char record[MOST_RECORD_BYTES];
    struct stat about;
    int length;

    if (fstat(flight->start.output, &about) < 0)
        return 0;
    length = snprintf(record, (size_t)notes->size, "%10d %12d.000 %lld %lld " MOMENT " %llu", 0, 0, flight->seq,
                      flight->run, WHOLE_S(&flight->begun), REST_MS(&flight->begun), (unsigned long long)about.st_ino);
    if (length < 0 || length >= notes->size)
        return 0;
    memset(record + length, ' ', (size_t)(notes->size - length));
    record[notes->size - 1] = '\n';
    return pwrite(notes->lock, record, (size_t)notes->size, (off_t)notes->place) == notes->size;
}

/* Add the pid, and a moment at which it is surely the command's. */
static void note_pid(const struct notes *notes, pid_t pid)
{
    char words[64];
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    int length = snprintf(words, sizeof words, "%10d %12lld.%03lld", (int)pid, WHOLE_S(&now), REST_MS(&now));
    if (pwrite(notes->lock, words, (size_t)length, (off_t)notes->place) != length)
        return; /* no space: what the command carries in its environment still tells it */
}

/* Take back what is noted of a command that has not begun. */
static void note_nothing(const struct notes *notes)
{
    char record[MOST_RECORD_BYTES];

    memset(record, ' ', (size_t)notes->size);
    record[notes->size - 1] = '\n';
    if (pwrite(notes->lock, record, (size_t)notes->size, (off_t)notes->place) != notes->size)
        return; /* no space: should we die now, its rescuer takes it for one that had begun */
}

/* Write down how a run ended that did well, as model/attempt.py does; 0: it could not be, or not wholly. */
static int note_end(struct notes *notes, const struct flight *flight)
{
    const struct landing *landing = &flight->landing;
    char *line = malloc(HEAD_BYTES + 6 * (size_t)landing->printed_size), *at = line;
    ssize_t written;

    if (line == NULL)
        return 0;
    if (!notes->is_begun)
        *at++ = '\n'; /* the line before may have been cut off by a full disk */
    at += sprintf(at, "[%lld, %lld, {\"cpu_ms\": %lld, \"peak_memory_bytes\": %lld, \"output_bytes\": %d, "
                  "\"begun_s\": %lld.%09ld, \"ended_s\": %lld.%09ld", flight->seq, flight->run,
                  (landing->cpu_us + 500) / 1000, landing->peak_kib * 1024LL, landing->printed_size,
                  (long long)flight->begun.tv_sec, flight->begun.tv_nsec, (long long)landing->ended.tv_sec,
                  landing->ended.tv_nsec);
    if (landing->printed_size) {
        at = stpcpy(at, ", \"output_tail\": \"");
        for (int place = 0; place < landing->printed_size; place++) {
            unsigned char byte = (unsigned char)landing->printed[place];
            if (byte >= ' ' && byte < 127 && byte != '"' && byte != '\\')
                *at++ = (char)byte;
            else
                at += sprintf(at, "\\u%04x", byte);
        }
        *at++ = '"';
    }
    at = stpcpy(at, "}]\n");
    notes->is_begun = 1;
    written = write(notes->ends, line, (size_t)(at - line));
    free(line);
    return written == at - line;
}

/* Wait until a command has ended, `others` have something to say, or the patience is at its end; 1: it has ended. */
static int wait_a_moment(int pidfd, int others, int patience_ms, int *is_called)
{
    struct pollfd watched[] = {{.fd = pidfd, .events = POLLIN}, {.fd = others, .events = POLLIN}};

    if (patience_ms <= 0 || poll(watched, 2, patience_ms) <= 0)
        return 0;
    *is_called = watched[1].revents != 0;
    return watched[0].revents != 0;
}

/* Read what waits in a pipe, and close it; NULL, with the pipe open, where that cannot be.
 *
 * Never waits: the command may have made packets of its output, or left somebody behind who reads it, too. */
static char *read_waiting(int output, int waiting, int *size)
{
    char *printed = malloc((size_t)waiting + 1);
    int flags;

    *size = 0;
    if (printed != NULL && waiting &&
        ((flags = fcntl(output, F_GETFL)) < 0 || fcntl(output, F_SETFL, flags | O_NONBLOCK) < 0)) {
        free(printed);
        printed = NULL;
    }
    if (printed == NULL)
        return NULL;
    while (*size < waiting) {
        ssize_t length = read(output, printed + *size, (size_t)(waiting - *size));
        if (length < 0 && errno == EINTR)
            continue;
        if (length <= 0)
            break;
        *size += (int)length;
    }
    close(output);
    return printed;
}

/* Collect a command that has ended and close what led to it; where more than `most` bytes of its output wait, they stay
 * in its pipe, which stays open. 0: it has not ended; -1: nobody knows. Once it is collected nothing fails: how it
 * ended cannot be had again. */
static int collect(pid_t pid, int pidfd, int output, long long most, struct landing *landing)
{
    struct rusage usage;
    int waiting = 0;

    clock_gettime(CLOCK_BOOTTIME, &landing->ended);
    pid_t found = wait4(pid, &landing->status, WNOHANG, &usage);
    if (found <= 0)
        return found;
    close(pidfd);
    landing->cpu_us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL + usage.ru_utime.tv_usec +
                      usage.ru_stime.tv_usec;
    landing->peak_kib = usage.ru_maxrss;
    landing->printed = NULL;
    if (ioctl(output, FIONREAD, &waiting) == 0 && waiting <= most)
        landing->printed = read_waiting(output, waiting, &landing->printed_size);
    return 1;
}

/* Note a command, start it, note its pid; 0: it could not be, and nothing is left of the try. */
static int take_off(struct flight *flight, const struct notes *notes, int *output)
{
    struct start *start = &flight->start;
    int ends[2];

    if (start->words[0] == NULL || strchr(start->words[0], '/') == NULL || pipe2(ends, O_CLOEXEC) < 0)
        return 0;
    start->output = ends[1];
    clock_gettime(CLOCK_BOOTTIME, &flight->begun);
    flight->pid = -1;
    /* Over its own streams the child would lose them, since they are to be closed when it becomes the command. */
    if (start->input > 2 && ends[0] > 2 && ends[1] > 2 && note_start(notes, flight))
        flight->pid = start_command(start);
    close(ends[1]);
    *output = ends[0];
    if (flight->pid >= 0) {
        note_pid(notes, flight->pid);
        return 1;
    }
    note_nothing(notes);
    close(ends[0]);
    return 0;
}

/* Begin one command after the other, and note how each ended, until one is not over within the patience, did not do
 * well or printed much, until `others` have something to say or the time is up. Returns how many have begun. */
static int fly(struct flight *flights, int count, struct notes *notes, int others, int patience_ms, double until,
               long long most, int *output)
{
    struct timespec now;
    int is_called = 0, begun = 0;

    while (begun < count && !is_called) {
        struct flight *flight = &flights[begun];
        clock_gettime(CLOCK_BOOTTIME, &now);
        if (seconds(&now) >= until || !take_off(flight, notes, output))
            break;
        begun++;
        flight->state = UNDER_WAY;
        if (!wait_a_moment(flight->start.pidfd, others, patience_ms, &is_called) ||
            collect(flight->pid, flight->start.pidfd, *output, most, &flight->landing) <= 0)
            break;
        flight->state = LANDED;
        if (notes->ends < 0 || flight->landing.status || flight->landing.printed == NULL ||
            flight->landing.printed_size > notes->most_printed || !note_end(notes, flight))
            break;
        flight->state = NOTED;
    }
    return begun;
}

static PyObject *printed_by(const struct landing *landing)
{
    if (landing->printed == NULL)
        return Py_NewRef(Py_None);
    return PyBytes_FromStringAndSize(landing->printed, landing->printed_size);
}

static PyObject *landed_of(const struct landing *landing)
{
    return Py_BuildValue("iLlNd", landing->status, landing->cpu_us, landing->peak_kib, printed_by(landing),
                         seconds(&landing->ended));
}

/* Return what is to be told of those that have begun: all that are noted, and the last one where it is not. */
static PyObject *told_of(const struct flight *flights, int begun, int output)
{
    PyObject *noted = PyList_New(0), *last = NULL;

    for (int number = 0; noted != NULL && number < begun; number++) {
        const struct flight *flight = &flights[number];
        if (flight->state != NOTED) {
            PyObject *landed = flight->state == LANDED ? landed_of(&flight->landing) : Py_NewRef(Py_None);
            last = Py_BuildValue("iiidN", (int)flight->pid, flight->start.pidfd, output, seconds(&flight->begun), landed);
            if (last == NULL)
                Py_CLEAR(noted);
            break;
        }
        PyObject *one = Py_BuildValue("LlNdd", (flight->landing.cpu_us + 500) / 1000, flight->landing.peak_kib,
                                      printed_by(&flight->landing), seconds(&flight->begun),
                                      seconds(&flight->landing.ended));
        if (one == NULL || PyList_Append(noted, one) < 0)
            Py_CLEAR(noted);
        Py_XDECREF(one);
    }
    if (noted == NULL) {
        Py_XDECREF(last);
        return NULL;
    }
    return Py_BuildValue("NN", noted, last == NULL ? Py_NewRef(Py_None) : last);
}

/* Read how a command is to be started; 0, with an exception, where no program can be given that. */
static int prepare(struct flight *flight, PyObject *command, PyObject *held)
{
    char *shared, *own;
    Py_ssize_t shared_size, own_size;
    PyObject *folder, *argv, *shared_bytes, *own_bytes;
    struct start *start = &flight->start;

    if (!PyArg_ParseTuple(command, "LLO!(SS)O", &flight->seq, &flight->run, &PyList_Type, &argv, &shared_bytes,
                          &own_bytes, &folder) ||
        PyBytes_AsStringAndSize(shared_bytes, &shared, &shared_size) < 0 ||
        PyBytes_AsStringAndSize(own_bytes, &own, &own_size) < 0 ||
        (start->folder = text_of(folder, held)) == NULL || (start->words = words_of(argv, held)) == NULL)
        return 0;
    start->variables = entries_of(shared, shared_size, own, own_size);
    if (start->variables == NULL)
        PyErr_NoMemory();
    return start->variables != NULL;
}

PyDoc_STRVAR(launch_doc,
             "launch([(seq, run, argv, (shared, own), folder)], signals, input,\n"
             "       (lock, place, size, ends, most_printed), others, patience_ms, until_s, most)\n"
             "    -> ([noted], (pid, pidfd, output, begun_s, landed | None) | None)\n\n"
             "Note a command whose first word is a path, start it with its output in a pipe, note its pid, wait for its\n"
             "end, note that, and go on with the next one. A noted one is told as (cpu_ms, peak_kib, printed, begun_s,\n"
             "ended_s). The last that has begun is told apart unless it is noted too; `landed` is what `land` returns,\n"
             "where it has ended. One that could not be started is none, and nothing is left of the try: who does it\n"
             "step by step learns why.");

static PyObject *launch(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *commands, *signals, *held, *told = NULL;
    struct notes notes = {0};
    struct flight *flights;
    double until;
    long long most;
    int input, others, patience_ms, count = 0, begun = 0, output = -1;
    static int is_busy; /* there is one stack */

    if (!PyArg_ParseTuple(arguments, "O!Si(iLiii)iidL", &PyList_Type, &commands, &signals, &input, &notes.lock,
                          &notes.place, &notes.size, &notes.ends, &notes.most_printed, &others, &patience_ms, &until,
                          &most))
        return NULL;
    if (notes.size < 1 || notes.size > MOST_RECORD_BYTES) {
        PyErr_SetString(PyExc_ValueError, "no record is of that size");
        return NULL;
    }
    Py_ssize_t wanted = PyList_Size(commands);
    flights = calloc((size_t)wanted + 1, sizeof *flights);
    held = PyList_New(0);
    if (flights == NULL || held == NULL) {
        free(flights);
        Py_XDECREF(held);
        return PyErr_NoMemory();
    }
    while (count < wanted && prepare(&flights[count], PyList_GetItem(commands, count), held)) {
        flights[count].start.signals = (const unsigned char *)PyBytes_AsString(signals);
        flights[count].start.input = input;
        count++;
    }
    if (PyErr_Occurred() && (PyErr_ExceptionMatches(PyExc_MemoryError) || PyErr_ExceptionMatches(PyExc_ValueError)))
        PyErr_Clear(); /* those before it can be started all the same */
    if (!PyErr_Occurred()) {
        if (!is_busy) {
            is_busy = 1;
            Py_BEGIN_ALLOW_THREADS /* a folder on a disk far away, or a command, holds up nobody else */
            begun = fly(flights, count, &notes, others, patience_ms, until, most, &output);
            Py_END_ALLOW_THREADS
            is_busy = 0;
        }
        told = told_of(flights, begun, output);
    }
    for (int number = 0; number <= count && number < wanted; number++) {
        free(flights[number].start.words);
        free(flights[number].start.variables);
        free(flights[number].landing.printed);
    }
    free(flights);
    Py_DECREF(held);
    return told;
}

PyDoc_STRVAR(land_doc,
             "land(pid, pidfd, output, most) -> (status, cpu_us, peak_kib, printed | None, ended_s) | None\n\n"
             "Collect a command that has ended and close what led to it; None: it has not. Where it printed more than\n"
             "`most` bytes that wait in its pipe, that stays open, and `printed` is None.");

static PyObject *land(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    int pid, pidfd, output, found;
    long long most;
    struct landing landing = {0};
    PyObject *landed;

    if (!PyArg_ParseTuple(arguments, "iiiL", &pid, &pidfd, &output, &most))
        return NULL;
    found = collect(pid, pidfd, output, most, &landing);
    if (found < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    if (found == 0)
        Py_RETURN_NONE;
    landed = landed_of(&landing);
    free(landing.printed);
    return landed;
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
