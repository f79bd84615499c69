/* Has a program stand still before the $STEP-th time that it sends something: loaded with LD_PRELOAD, it stops the whole
 * process there (SIGSTOP). Whoever started it kills it, lets it go on, or does something to others meanwhile.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

static atomic_long left;

__attribute__((constructor)) static void begin(void) {
    const char *step = getenv("STEP");
    left = step ? atol(step) : 0;
}

ssize_t send(int socket, const void *bytes, size_t count, int flags) {
    static ssize_t (*real)(int, const void *, size_t, int);
    if (!real) real = (ssize_t(*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    if (atomic_fetch_sub(&left, 1) == 1) raise(SIGSTOP);
    return real(socket, bytes, count, flags);
}
