/* The keeper of one command inside a sandbox, and the nursery that keepers are forked from.
 *
 * Owns: the process tree of that command. It is root and a child subreaper, so whatever the command forks, daemonises
 * or moves into another session stays its descendant; the tree is killed in passes over /proc until none is left.
 * Must never: run anything but what its child is told on fd 3, or leave the child any right of root.
 *
 * `keeper`, started once by PID 1 with a socket as fd 3, is the nursery: for each message with five files it forks a
 * keeper that has them as 0 to 4. A keeper is forked ahead of need, with its child already forked and waiting, so that
 * a command costs one exec.
 *
 * A keeper has: 0, 1, 2  the command's stdin, stdout, stderr
 *               3        the child's order (see "order" below); on failure the child answers stage and errno; closed by exec
 *               4        the keeper's line: one byte in = signal for the tree; 8 bytes out = a report
 * Static, no configuration, no allocation after start except the order itself.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NURSERY_FD = 3, ORDER_FD = 3, LINE_FD = 4, FILES = 5, SCRIPT_FD = 9 };
enum { ORDER_MAX = 4 << 20, WORDS_MAX = 1 << 16, TREE_MAX = 8192, PASS_MS = 10, PIDS = 1 << 22 };
enum { KEEPER_UID = 65533 }; /* in rights.py, too: keepers are root by effective user alone, so that no root reaches them */
enum { STDIN_EMPTY = 1, HAS_SCRIPT = 2 };

struct report { uint8_t kind; uint8_t pad[3]; int32_t value; };
/* kind: 'E' the command's exit status, 'S' 128 + the signal that ended it, 'Z' its tree is empty (value: how many
 * processes of it a signal of ours met, each once: what a stop ended) */

/* order: u32 bytes that follow | u32 flags uid gid nproc nofile | u32 n, n bytes script | str cwd
 *        | u32 n, n str env | u32 n, n str argv        (u32 in host order; str: u32 length with the NUL, bytes) */
struct order { const char *at, *end; };

static void fail(char stage, int error)
{
    unsigned char answer[5] = { (unsigned char)stage };
    memcpy(answer + 1, &error, 4);
    ssize_t ignored = write(ORDER_FD, answer, sizeof answer);
    (void)ignored;
    _exit(stage == 'x' && error == ENOENT ? 127 : 126);
}

static void read_all(int fd, void *into, size_t n)
{
    for (char *p = into; n;) {
        ssize_t got = read(fd, p, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) _exit(0);                    /* the runner let this spare go */
        p += got; n -= (size_t)got;
    }
}

static uint32_t number(struct order *o)
{
    uint32_t value;
    if (o->end - o->at < 4) fail('o', EINVAL);
    memcpy(&value, o->at, 4);
    o->at += 4;
    return value;
}

static const char *bytes(struct order *o, uint32_t n)
{
    const char *start = o->at;
    if ((uint64_t)(o->end - o->at) < n) fail('o', EINVAL);
    o->at += n;
    return start;
}

static char *word(struct order *o)
{
    uint32_t n = number(o);
    const char *text = bytes(o, n);
    if (n == 0 || text[n - 1] != 0) fail('o', EINVAL);
    return (char *)text;
}

static char **words(struct order *o)
{
    uint32_t n = number(o);
    if (n > WORDS_MAX) fail('o', E2BIG);
    char **list = calloc(n + 1, sizeof *list);
    if (!list) fail('o', ENOMEM);
    for (uint32_t i = 0; i < n; i++) list[i] = word(o);
    return list;
}

static void limit(int what, rlim_t value)
{
    struct rlimit r = { value, value };
    if (setrlimit(what, &r)) fail('s', errno);
}

/* A long script cannot be an argument (128 KiB each), so the shell reads it from a file that has no name. */
static void hold_script(const char *text, uint32_t n)
{
    int fd = (int)syscall(SYS_memfd_create, "script", 0);
    if (fd < 0) fail('s', errno);
    for (uint32_t done = 0; done < n;) {
        ssize_t got = write(fd, text + done, n - done);
        if (got <= 0) fail('s', errno);
        done += (uint32_t)got;
    }
    if (lseek(fd, 0, SEEK_SET) || dup2(fd, SCRIPT_FD) < 0) fail('s', errno);
    if (fd != SCRIPT_FD) close(fd);
}

#if defined(__x86_64__)
enum { ARCHITECTURE = AUDIT_ARCH_X86_64 };
#elif defined(__aarch64__)
enum { ARCHITECTURE = AUDIT_ARCH_AARCH64 };
#endif

/* No user namespaces. Who makes one holds every capability in it, and gVisor takes that for enough to open raw and packet
 * sockets on the sandbox's own network, where they can send from another sandbox's address. clone3 hides its flags in
 * memory: as if it were not there, and the C library takes clone. Stays across exec, for good, for all descendants. */
static void fence(void)
{
    enum { LOAD = BPF_LD | BPF_W | BPF_ABS, IS = BPF_JMP | BPF_JEQ | BPF_K, HAS = BPF_JMP | BPF_JSET | BPF_K };
    enum { END = BPF_RET | BPF_K };
    struct sock_filter steps[] = {
        BPF_STMT(LOAD, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(IS, ARCHITECTURE, 1, 0),
        BPF_STMT(END, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(LOAD, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(IS, SYS_clone, 4, 0),
        BPF_JUMP(IS, SYS_unshare, 3, 0),
        BPF_JUMP(IS, SYS_clone3, 0, 1),
        BPF_STMT(END, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(END, SECCOMP_RET_ALLOW),
        BPF_STMT(LOAD, offsetof(struct seccomp_data, args[0])), /* its low half: both machines are little-endian */
        BPF_JUMP(HAS, CLONE_NEWUSER, 0, 1),
        BPF_STMT(END, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(END, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof steps / sizeof *steps, steps };
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) fail('s', errno);
}

/* What no order changes, done while there is time. The child stays as keepers are: as the user, or plain root, it could be
 * reached by the user's other processes or an install's, and made to run something else. */
static int get_ready(void)
{
    for (int cap = 0; cap < 64; cap++) prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail('s', errno);
    fence();
    setsid();
    umask(022);
    limit(RLIMIT_CORE, 0);
    fcntl(ORDER_FD, F_SETFD, FD_CLOEXEC);
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Nothing can come back after the last line. Root (an install) stays root, without a capability: the bounding set is empty,
 * so that its exec gives none back. */
static void become(uid_t uid, gid_t gid)
{
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
    if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid)) fail('s', errno);
    if (syscall(SYS_capset, &head, none)) fail('s', errno);
    if (uid && setresuid(0, 0, 0) == 0) fail('s', EPERM);
}

static void run_order(void)
{
    uint32_t size;
    int null = get_ready();
    read_all(ORDER_FD, &size, sizeof size);
    char *body = size > ORDER_MAX ? NULL : malloc(size);
    if (!body) fail('o', E2BIG);
    read_all(ORDER_FD, body, size);
    struct order o = { body, body + size };
    uint32_t flags = number(&o), uid = number(&o), gid = number(&o), nproc = number(&o), nofile = number(&o);
    uint32_t script_size = number(&o);
    const char *script = bytes(&o, script_size), *cwd = word(&o);
    char **env = words(&o), **argv = words(&o);
    if (!argv[0]) fail('o', EINVAL);

    if (flags & STDIN_EMPTY && (null < 0 || dup2(null, 0) < 0)) fail('s', errno);
    if (flags & HAS_SCRIPT) hold_script(script, script_size);
    limit(RLIMIT_NOFILE, nofile);
    limit(RLIMIT_NPROC, nproc);
    become(uid, gid);
    if (chdir(cwd)) fail('c', errno);
    environ = env;
    execvp(argv[0], argv);
    int error = errno;
    dprintf(2, "%s: %s\n", argv[0], error == ENOENT ? "command not found" : strerror(error));
    fail('x', error);
}

static int parse_stat(const char *pid, int *ppid, char *state)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return -1;
    text[n] = 0;
    char *after = strrchr(text, ')');              /* a name may hold blanks and brackets */
    return after && sscanf(after + 1, " %c %d", state, ppid) == 2 ? 0 : -1;
}

/* Whether it had no signal of ours before: a process is met again in later passes, until it is gone. Room for every
 * number that a kernel gives; a page of it is memory once it is written. */
static int is_first(int pid)
{
    static uint8_t met[PIDS / 8];
    if (pid < 0 || pid >= PIDS || met[pid / 8] & 1 << pid % 8) return 0;
    met[pid / 8] |= (uint8_t)(1 << pid % 8);
    return 1;
}

/* One pass: find every living descendant, signal each. Returns how many of them it met for the first time. */
static int signal_tree(int sig)
{
    static struct { int pid, ppid; char state, mine; } all[TREE_MAX];
    int n = 0, met = 0, grew = 1, self = getpid();
    DIR *proc = opendir("/proc");
    if (!proc) return 0;
    for (struct dirent *e; n < TREE_MAX && (e = readdir(proc));) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9') continue;
        all[n].pid = atoi(e->d_name);
        all[n].mine = 0;
        if (parse_stat(e->d_name, &all[n].ppid, &all[n].state) == 0) n++;
    }
    closedir(proc);
    while (grew) {
        grew = 0;
        for (int i = 0; i < n; i++) {
            if (all[i].mine) continue;
            int mine = all[i].ppid == self;
            for (int j = 0; !mine && j < n; j++) mine = all[j].mine && all[j].pid == all[i].ppid;
            if (mine) all[i].mine = 1, grew = 1;
        }
    }
    for (int i = 0; i < n; i++)
        if (all[i].mine && all[i].state != 'Z' && kill(all[i].pid, sig) == 0) met += is_first(all[i].pid);
    return met;
}

static void tell(const struct report *reports, int n)
{
    ssize_t ignored = write(LINE_FD, reports, n * sizeof *reports);
    (void)ignored;
}

/* Reaps whatever ended; 0 when no descendant is left (a subreaper without children has no descendants).
 * The end of the command and of its tree go out in one write where they come together: the runner sees no gap. */
static int reap(pid_t command, int met)
{
    struct report reports[2] = { { 0 } };
    int n = 0, left = -1;
    while (left < 0) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == command) {
            reports[n].kind = WIFSIGNALED(status) ? 'S' : 'E';
            reports[n++].value = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
        if (pid == 0) left = 1;
        if (pid < 0 && errno != EINTR) left = 0;
    }
    if (!left) {
        reports[n].kind = 'Z';
        reports[n++].value = met;
    }
    if (n) tell(reports, n);
    return left;
}

static void wake(int sig) { (void)sig; }

static void keep(pid_t command, const sigset_t *waiting)
{
    int killing = 0, met = 0;
    while (reap(command, met)) {
        struct timespec soon = { 0, PASS_MS * 1000000L };
        struct pollfd line = { LINE_FD, POLLIN, 0 };
        if (killing) met += signal_tree(SIGKILL);
        if (ppoll(&line, 1, killing ? &soon : NULL, waiting) <= 0) continue;
        unsigned char sig;
        if (read(LINE_FD, &sig, 1) != 1 || sig == SIGKILL) {  /* a runner that is gone counts as kill */
            if (!killing) met += signal_tree(SIGKILL);
            killing = 1;
            if (line.revents & POLLHUP) usleep(PASS_MS * 1000);
        } else {
            met += signal_tree(sig);
        }
    }
}

static int keeper(void)
{
    sigset_t child, old;
    sigemptyset(&old);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) return 125;
    pid_t command = fork();
    if (command < 0) return 125;
    if (command == 0) {
        close(LINE_FD);
        run_order();
    }
    for (int fd = 0; fd <= ORDER_FD; fd++) close(fd);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    struct sigaction sa = { .sa_handler = wake };
    sigaction(SIGCHLD, &sa, NULL);
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    sigprocmask(SIG_BLOCK, &child, &old);          /* SIGCHLD is only taken inside ppoll: none is missed */
    keep(command, &old);
    return 0;
}

/* Five files for one keeper; 0 when PID 1 is gone. Ours are 0 to 3, so they come as 4 to 8, in order. */
static int receive(int files[FILES])
{
    union { char room[CMSG_SPACE(FILES * sizeof(int))]; struct cmsghdr align; } control;
    char byte;
    struct iovec data = { &byte, 1 };
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
                              .msg_controllen = sizeof control };
    ssize_t got;
    do got = recvmsg(NURSERY_FD, &message, 0);
    while (got < 0 && errno == EINTR);
    struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!head || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(FILES * sizeof(int))) return 0;
    memcpy(files, CMSG_DATA(head), FILES * sizeof(int));
    return 1;
}

int main(void)
{
    int files[FILES];
    sigset_t none;
    if (setresuid(KEEPER_UID, 0, KEEPER_UID)) return 125;
    for (int sig = 1; sig < 65; sig++) signal(sig, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGCHLD, SIG_IGN);                      /* nobody waits for keepers: their line tells of their end */
    while (receive(files)) {
        if (fork() == 0) {
            signal(SIGCHLD, SIG_DFL);
            if (files[0] != LINE_FD) return 125;   /* else placing one could close another */
            for (int i = 0; i < FILES; i++) dup2(files[i], i);
            for (int i = 1; i < FILES; i++) close(files[i]);
            return keeper();
        }
        for (int i = 0; i < FILES; i++) close(files[i]);
    }
    return 0;
}
