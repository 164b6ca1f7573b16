/* Makes calls of the C library fail, be slow, or tell another time: see faults.py, which sets the variables.

   FAULT_CALL   write, fsync, rename, open, read or clock
   FAULT_PATH   only files below this folder
   FAULT_FIRST  the number of the first call that fails, from 1
   FAULT_COUNT  how many fail; -1: all from there on
   FAULT_ERRNO  with which error
   FAULT_DELAY  microseconds that a call takes longer, instead of failing
   FAULT_SHIFT  seconds that the clock is wrong from then on
   FAULT_TALLY  a file to which the number of calls is written when the process ends */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char *call, *folder, *tally;
static long first, count, delay, shift;
static int error;
static atomic_long calls;

void campaign_arm(void) {
  const char *text;
  call = getenv("FAULT_CALL");
  folder = getenv("FAULT_PATH");
  tally = getenv("FAULT_TALLY");
  first = (text = getenv("FAULT_FIRST")) ? atol(text) : 1;
  count = (text = getenv("FAULT_COUNT")) ? atol(text) : -1;
  delay = (text = getenv("FAULT_DELAY")) ? atol(text) : 0;
  shift = (text = getenv("FAULT_SHIFT")) ? atol(text) : 0;
  error = (text = getenv("FAULT_ERRNO")) ? atoi(text) : EIO;
  atomic_store(&calls, 0);
}

__attribute__((constructor)) static void begin(void) { campaign_arm(); }

__attribute__((destructor)) static void end(void) {
  char line[32];
  const char *name = tally;
  if (!name) return;
  tally = call = NULL;
  int file = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (file < 0) return;
  int size = snprintf(line, sizeof line, "%ld\n", atomic_load(&calls));
  if (write(file, line, size) != size) { /* the count is lost, and the case counts as not reached */ }
  close(file);
}

static int below(const char *path) {
  char whole[4096];
  if (!folder || !path) return 0;
  if (path[0] != '/') {
    if (!getcwd(whole, sizeof whole)) return 0;
    size_t size = strlen(whole);
    snprintf(whole + size, sizeof whole - size, "/%s", path);
    path = whole;
  }
  return strncmp(path, folder, strlen(folder)) == 0;
}

static int inside(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return below(path);
}

/* Counts a call, and returns whether it has to fail. */
static int due(void) {
  long number = atomic_fetch_add(&calls, 1) + 1;
  if (number < first || (count >= 0 && number >= first + count)) return 0;
  if (delay) {
    usleep(delay);
    return 0;
  }
  errno = error;
  return 1;
}

#define IS(name) (call && strcmp(call, name) == 0)
#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int file, const void *data, size_t size) {
  REAL(write);
  return IS("write") && inside(file) && due() ? -1 : real(file, data, size);
}
ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
  REAL(pwrite);
  return IS("write") && inside(file) && due() ? -1 : real(file, data, size, at);
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
  REAL(pwrite64);
  return IS("write") && inside(file) && due() ? -1 : real(file, data, size, at);
}
ssize_t writev(int file, const struct iovec *parts, int number) {
  REAL(writev);
  return IS("write") && inside(file) && due() ? -1 : real(file, parts, number);
}
ssize_t read(int file, void *data, size_t size) {
  REAL(read);
  return IS("read") && inside(file) && due() ? -1 : real(file, data, size);
}
ssize_t pread64(int file, void *data, size_t size, off64_t at) {
  REAL(pread64);
  return IS("read") && inside(file) && due() ? -1 : real(file, data, size, at);
}
int fsync(int file) {
  REAL(fsync);
  return IS("fsync") && inside(file) && due() ? -1 : real(file);
}
int fdatasync(int file) {
  REAL(fdatasync);
  return IS("fsync") && inside(file) && due() ? -1 : real(file);
}
int rename(const char *from, const char *to) {
  REAL(rename);
  return IS("rename") && below(to) && due() ? -1 : real(from, to);
}
int renameat(int a, const char *from, int b, const char *to) {
  REAL(renameat);
  return IS("rename") && below(to) && due() ? -1 : real(a, from, b, to);
}
int open(const char *path, int flags, ...) {
  va_list rest;
  REAL(open);
  va_start(rest, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return IS("open") && below(path) && due() ? -1 : real(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  va_list rest;
  REAL(open64);
  va_start(rest, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return IS("open") && below(path) && due() ? -1 : real(path, flags, mode);
}
int openat(int where, const char *path, int flags, ...) {
  va_list rest;
  REAL(openat);
  va_start(rest, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return IS("open") && below(path) && due() ? -1 : real(where, path, flags, mode);
}
static long wrong(void) {
  return IS("clock") && atomic_fetch_add(&calls, 1) + 1 >= first ? shift : 0;
}
int clock_gettime(clockid_t which, struct timespec *now) {
  REAL(clock_gettime);
  int done = real(which, now);
  if (which == CLOCK_REALTIME && done == 0) now->tv_sec += wrong();
  return done;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  REAL(gettimeofday);
  int done = real(now, zone);
  if (done == 0) now->tv_sec += wrong();
  return done;
}
time_t time(time_t *where) {
  REAL(time);
  time_t now = real(NULL);
  now += wrong();
  if (where) *where = now;
  return now;
}
