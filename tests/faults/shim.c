/* Faults on demand: preloaded into a process, makes the n-th call of a kind fail, fall short or kill the process.
 *
 * What to do is in a file that EXACTRANK_FAULTS names, mapped by every process that inherits the variable, so that one counter counts the
 * calls of all of them, and whoever maps the file (tests/faults/shim.py) can arm the shim and read the counter at any time.
 * Calls on files count only where the file lies in the folder under test, so that n is small and the same in each run.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* The order is that of KINDS in shim.py. */
enum kind { WRITE, SYNC, RENAME, MAP, TRUNCATE, OPEN, UNLINK, ALLOCATE, THREAD, FORK, NETWORK };
enum action { COUNT, FAIL, SHORT, KILL };

struct plan {
  _Atomic uint64_t count; /* calls of the kind so far */
  uint64_t n;             /* the call that the fault happens at, from 1 */
  uint32_t kind, action;
  uint32_t error;  /* errno of a failure */
  uint32_t lasts;  /* whether all later calls fail as well, as on a full disk */
  uint64_t size;   /* bytes from which on an allocation counts */
  char folder[PATH_MAX];
};

static struct plan *plan = NULL;

__attribute__((constructor)) static void map_plan(void) {
  const char *name = getenv("EXACTRANK_FAULTS");
  int (*open_)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  void *(*mmap_)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
  int file = name == NULL ? -1 : open_(name, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void *mapped = mmap_(NULL, sizeof(struct plan), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) plan = mapped;
}

static int inside(const char *path) {
  size_t length = strlen(plan->folder);
  return strncmp(path, plan->folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int path_inside(int folder, const char *path) {
  char whole[2 * PATH_MAX], parent[PATH_MAX];
  if (path[0] == '/') return inside(path);
  if (folder != AT_FDCWD || getcwd(parent, sizeof parent) == NULL) return 0;
  snprintf(whole, sizeof whole, "%s/%s", parent, path);
  return inside(whole);
}

static int file_inside(int file) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return inside(path);
}

/* Whether this call is the one; kills the process itself where that is the fault. */
static int struck(enum kind kind) {
  if (plan == NULL || plan->kind != kind) return 0;
  uint64_t number = atomic_fetch_add(&plan->count, 1) + 1;
  if (plan->action == COUNT || number < plan->n || (number > plan->n && !plan->lasts)) return 0;
  if (plan->action == KILL) {
    kill(getpid(), SIGKILL);
    pause();
  }
  errno = (int)plan->error;
  return 1;
}

static int struck_file(enum kind kind, int file) { return plan != NULL && plan->kind == kind && file_inside(file) && struck(kind); }

static int struck_path(enum kind kind, int folder, const char *path) {
  return plan != NULL && plan->kind == kind && path_inside(folder, path) && struck(kind);
}

#define REAL(name) ((__typeof__(&name))real(&cached, #name))

static void *real(void **cached, const char *name) {
  if (*cached == NULL) *cached = dlsym(RTLD_NEXT, name);
  return *cached;
}

/* A write that is struck fails, or writes half of its bytes. */
#define WRITING(name, parameters, arguments, halved)                                    \
  ssize_t name parameters {                                                             \
    static void *cached = NULL;                                                         \
    if (!struck_file(WRITE, file)) return REAL(name) arguments;                         \
    return plan->action == SHORT && size > 1 ? REAL(name) halved : -1;                  \
  }

WRITING(write, (int file, const void *bytes, size_t size), (file, bytes, size), (file, bytes, size / 2))
WRITING(pwrite, (int file, const void *bytes, size_t size, off_t at), (file, bytes, size, at), (file, bytes, size / 2, at))
WRITING(pwrite64, (int file, const void *bytes, size_t size, off64_t at), (file, bytes, size, at), (file, bytes, size / 2, at))

ssize_t writev(int file, const struct iovec *parts, int count) {
  static void *cached = NULL;
  return struck_file(WRITE, file) ? -1 : REAL(writev)(file, parts, count);
}

#define ON_FILE(kind, name, parameters, arguments)                          \
  int name parameters {                                                     \
    static void *cached = NULL;                                             \
    return struck_file(kind, file) ? -1 : REAL(name) arguments;             \
  }

ON_FILE(SYNC, fsync, (int file), (file))
ON_FILE(SYNC, fdatasync, (int file), (file))
ON_FILE(TRUNCATE, ftruncate, (int file, off_t size), (file, size))
ON_FILE(TRUNCATE, ftruncate64, (int file, off64_t size), (file, size))
ON_FILE(TRUNCATE, posix_fallocate, (int file, off_t at, off_t size), (file, at, size))

#define ON_PATH(kind, name, folder, parameters, arguments)                  \
  int name parameters {                                                     \
    static void *cached = NULL;                                             \
    return struck_path(kind, folder, path) ? -1 : REAL(name) arguments;     \
  }

ON_PATH(RENAME, rename, AT_FDCWD, (const char *path, const char *target), (path, target))
ON_PATH(RENAME, renameat, from, (int from, const char *path, int to, const char *target), (from, path, to, target))
ON_PATH(RENAME, renameat2, from, (int from, const char *path, int to, const char *target, unsigned flags), (from, path, to, target, flags))
ON_PATH(RENAME, link, AT_FDCWD, (const char *path, const char *target), (path, target))
ON_PATH(RENAME, linkat, from, (int from, const char *path, int to, const char *target, int flags), (from, path, to, target, flags))
ON_PATH(UNLINK, unlink, AT_FDCWD, (const char *path), (path))
ON_PATH(UNLINK, unlinkat, from, (int from, const char *path, int flags), (from, path, flags))
ON_PATH(UNLINK, rmdir, AT_FDCWD, (const char *path), (path))

/* Opening counts where it may create a file. */
#define OPENING(name, folder, parameters, arguments)                                            \
  int name parameters {                                                                         \
    static void *cached = NULL;                                                                 \
    mode_t mode = 0;                                                                            \
    if (flags & (O_CREAT | __O_TMPFILE)) {                                                      \
      va_list rest;                                                                             \
      va_start(rest, flags);                                                                    \
      mode = va_arg(rest, mode_t);                                                              \
      va_end(rest);                                                                             \
      if (struck_path(OPEN, folder, path)) return -1;                                           \
    }                                                                                           \
    return REAL(name) arguments;                                                                \
  }

OPENING(open, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPENING(open64, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPENING(openat, at, (int at, const char *path, int flags, ...), (at, path, flags, mode))
OPENING(openat64, at, (int at, const char *path, int flags, ...), (at, path, flags, mode))

#define MAPPING(name, type)                                                                         \
  void *name(void *at, size_t size, int access, int flags, int file, type offset) {                 \
    static void *cached = NULL;                                                                     \
    int here = file >= 0 && struck_file(MAP, file);                                                 \
    return here ? MAP_FAILED : REAL(name)(at, size, access, flags, file, offset);                   \
  }

MAPPING(mmap, off_t)
MAPPING(mmap64, off64_t)

/* glibc's own names, since dlsym itself allocates. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static int starved(size_t size) { return plan != NULL && plan->kind == ALLOCATE && size >= plan->size && struck(ALLOCATE); }

void *malloc(size_t size) { return starved(size) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return starved(count * size) ? NULL : __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return starved(size) ? NULL : __libc_realloc(block, size); }
void *aligned_alloc(size_t alignment, size_t size) { return starved(size) ? NULL : __libc_memalign(alignment, size); }
int posix_memalign(void **block, size_t alignment, size_t size) {
  *block = starved(size) ? NULL : __libc_memalign(alignment, size);
  return *block == NULL ? ENOMEM : 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *settings, void *(*begin)(void *), void *argument) {
  static void *cached = NULL;
  return struck(THREAD) ? (int)plan->error : REAL(pthread_create)(thread, settings, begin, argument);
}

pid_t fork(void) {
  static void *cached = NULL;
  return struck(FORK) ? -1 : REAL(fork)();
}

pid_t vfork(void) { return fork(); } /* a real one cannot be wrapped; the caller cannot tell */

int socket(int family, int type, int protocol) {
  static void *cached = NULL;
  return family != AF_UNIX && struck(NETWORK) ? -1 : REAL(socket)(family, type, protocol);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
  static void *cached = NULL;
  return struck(NETWORK) ? EAI_FAIL : REAL(getaddrinfo)(node, service, hints, found);
}
