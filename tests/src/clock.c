/* Preloaded into a server: its calendar is ahead of the machine's by as many microseconds as the first
   number in the file that CLOCK_OFFSET names says. It stands still where the second number is not zero,
   at that many microseconds since 1970. The test writes both while the server runs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *numbers;

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("CLOCK_OFFSET");
  int file = path ? open(path, O_RDONLY) : -1;
  void *page = file < 0 ? MAP_FAILED : mmap(0, 2 * sizeof *numbers, PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) numbers = page;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int outcome = syscall(SYS_clock_gettime, clock, time);
  if (!outcome && numbers && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    long long micros = time->tv_sec * 1000000LL + time->tv_nsec / 1000 + numbers[0];
    if (numbers[1]) micros = numbers[1];
    time->tv_sec = micros / 1000000;
    time->tv_nsec = micros % 1000000 * 1000;
  }
  return outcome;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec precise;
  int outcome = clock_gettime(CLOCK_REALTIME, &precise);
  (void)zone;
  time->tv_sec = precise.tv_sec;
  time->tv_usec = precise.tv_nsec / 1000;
  return outcome;
}

time_t time(time_t *stored) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (stored) *stored = precise.tv_sec;
  return precise.tv_sec;
}
