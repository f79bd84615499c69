/* Makes one thread of a program written in Rust panic: loaded with LD_PRELOAD, it has the clock fail once for a thread
 * whose name begins with $PANIC_THREAD, after a SIGUSR2. The standard library panics when it cannot read the clock.
 * With $PANIC_STILL the thread stands still there, for ever.
 *
 * The server itself has no way to be made to panic: what is not there, no client can reach.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static atomic_int armed;
static const char *victim;

static void arm(int signal) {
    (void)signal;
    armed = 1;
}

__attribute__((constructor)) static void begin(void) {
    victim = getenv("PANIC_THREAD");
    signal(SIGUSR2, arm);
}

static int is_victim(void) {
    char name[16] = "";
    return victim && !prctl(PR_GET_NAME, name) && !strncmp(name, victim, strlen(victim));
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (armed && is_victim() && atomic_exchange(&armed, 0)) {
        while (getenv("PANIC_STILL")) pause();
        errno = EINVAL;
        return -1;
    }
    return real(clock, now);
}
