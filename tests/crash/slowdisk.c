/* Makes a disk slow: loaded with LD_PRELOAD, it holds up reads, writes and syncs of data files and logs.
 *
 * SLOWDISK_CONTROL names a file whose first eight bytes are the delay in microseconds (native byte order). It is mapped,
 * so a test changes the delay of a running server by writing to it. SLOWDISK_FOLDER limits the effect to files whose path
 * contains that text. Everything else passes through at full speed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t *delay_us;
static const char *folder;

__attribute__((constructor)) static void begin(void) {
    const char *control = getenv("SLOWDISK_CONTROL");
    folder = getenv("SLOWDISK_FOLDER");
    int fd = control ? open(control, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, sizeof(uint64_t), PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) delay_us = page;
    close(fd);
}

/* A data file or a log of the store, in the folder that is meant to be slow. */
static int is_slow(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 5) return 0;
    path[length] = 0;
    if (strcmp(path + length - 4, ".sst") && strcmp(path + length - 4, ".log")) return 0;
    return !folder || strstr(path, folder);
}

static void hold(int fd) {
    uint64_t us = delay_us ? *delay_us : 0;
    int saved = errno;
    if (us && is_slow(fd)) {
        struct timespec left = {us / 1000000, (us % 1000000) * 1000};
        while (nanosleep(&left, &left) && errno == EINTR) {}
    }
    errno = saved;
}

/* Defines NAME so that it holds the caller up, and then does what the C library's own does. */
#define SLOW(result, name, parameters, arguments)                        \
    result name parameters {                                             \
        static result(*real) parameters;                                 \
        if (!real) real = (result(*) parameters)dlsym(RTLD_NEXT, #name); \
        hold(fd);                                                        \
        return real arguments;                                           \
    }

SLOW(ssize_t, pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at))
SLOW(ssize_t, pread64, (int fd, void *to, size_t size, off64_t at), (fd, to, size, at))
SLOW(ssize_t, preadv, (int fd, const struct iovec *to, int count, off_t at), (fd, to, count, at))
SLOW(ssize_t, preadv64, (int fd, const struct iovec *to, int count, off64_t at), (fd, to, count, at))
SLOW(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
SLOW(ssize_t, pwrite64, (int fd, const void *from, size_t size, off64_t at), (fd, from, size, at))
SLOW(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size))
SLOW(int, fsync, (int fd), (fd))
SLOW(int, fdatasync, (int fd), (fd))
SLOW(int, sync_file_range, (int fd, off64_t at, off64_t size, unsigned int flags), (fd, at, size, flags))
