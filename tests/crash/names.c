/* Writes down which names of files appear and which directories are synced: loaded with LD_PRELOAD.
 *
 * NAMES_LOG is the file that it adds a line to for each: "made PATH" when a name appears (mkdir, open with O_CREAT, rename),
 * "synced PATH" after an fsync of a directory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int out = -1;

__attribute__((constructor)) static void begin(void) {
    const char *log = getenv("NAMES_LOG");
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    if (log) out = real(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void note(const char *what, const char *path) {
    char line[PATH_MAX + 16];
    int saved = errno, length = snprintf(line, sizeof line, "%s %s\n", what, path);
    if (out >= 0 && write(out, line, (size_t)length) != length) abort();
    errno = saved;
}

static int exists(const char *path) {
    struct stat found;
    int saved = errno, result = !lstat(path, &found);
    errno = saved;
    return result;
}

/* Defines an opener that says when it made the file. */
#define OPENER(name)                                                                          \
    int name(const char *path, int flags, ...) {                                              \
        static int (*real)(const char *, int, ...);                                           \
        if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name);           \
        va_list rest;                                                                         \
        va_start(rest, flags);                                                                \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;             \
        va_end(rest);                                                                         \
        int is_new = (flags & O_CREAT) && !exists(path), fd = real(path, flags, mode);        \
        if (fd >= 0 && is_new) note("made", path);                                            \
        return fd;                                                                            \
    }

OPENER(open)
OPENER(open64)

int mkdir(const char *path, mode_t mode) {
    static int (*real)(const char *, mode_t);
    if (!real) real = (int (*)(const char *, mode_t))dlsym(RTLD_NEXT, "mkdir");
    int result = real(path, mode);
    if (!result) note("made", path);
    return result;
}

int rename(const char *from, const char *to) {
    static int (*real)(const char *, const char *);
    if (!real) real = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    int result = real(from, to);
    if (!result) note("made", to);
    return result;
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    int result = real(fd);
    struct stat kind;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!result && length > 0 && !fstat(fd, &kind) && S_ISDIR(kind.st_mode)) {
        path[length] = 0;
        note("synced", path);
    }
    return result;
}
