/* SPDX-License-Identifier: Apache-2.0 */
/* Requests sandbox exceptions for its workers, and reports the results of operations: `GET /WORD?TEXT`
 * returns 0 or the error. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <monkey/plugin.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

struct settings {
    mk_str write, read;
    bool names, trust;
    struct mk_conf_words connects, binds;
};

static const struct mk_conf_key keys[] = {
    {.name = "Read", .type = MK_CONF_TEXT, MK_CONF_AT(struct settings, read)},
    {.name = "Write", .type = MK_CONF_TEXT, MK_CONF_AT(struct settings, write)},
    {.name = "Names", .type = MK_CONF_BOOL, MK_CONF_AT(struct settings, names), .default_value = "off"},
    {.name = "Trust", .type = MK_CONF_BOOL, MK_CONF_AT(struct settings, trust), .default_value = "off"},
    {.name = "Connect", .type = MK_CONF_WORDS, MK_CONF_AT(struct settings, connects)},
    {.name = "Bind", .type = MK_CONF_WORDS, MK_CONF_AT(struct settings, binds)},
};

static const struct mk_conf_table table = {.section = "SANDBOX_EXCEPTIONS",
                                           .keys = keys,
                                           .n = 6,
                                           .size = sizeof(struct settings),
                                           .scope = MK_CONF_SERVER};

static uint16_t port_of(mk_str word)
{
    uint64_t port = 0;
    (void)mk_num_parse(word, &port);
    return (uint16_t)port;
}

static int load(struct mk_config *c, void **data)
{
    const struct settings *g = *data = mk_config_settings(c, &table);
    if (!g)
        return -ENOMEM;
    if (g->read.p)
        mk_config_allow_path(c, g, "Read", mk_config_path(c, g, g->read));
    if (g->write.p)
        mk_config_allow_writing(c, g, "Write", mk_config_path(c, g, g->write));
    for (size_t i = 0; i < g->connects.n; i++)
        mk_config_allow_connect(c, g, "Connect", port_of(g->connects.v[i]));
    for (size_t i = 0; i < g->binds.n; i++)
        mk_config_allow_bind(c, g, "Bind", port_of(g->binds.v[i]));
    for (int i = 0; i < 2; i++) { /* the second call changes nothing */
        if (g->names)
            mk_config_allow_resolver(c, g, "Names");
        if (g->trust)
            mk_config_allow_trust_store(c, g, "Trust");
    }
    return 0;
}

static int try_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600), e = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return e;
}

static int try_socket(int (*use)(int, const struct sockaddr *, socklen_t), const char *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(port_of(mk_str_from_c(port))),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int e = fd < 0 || use(fd, (const struct sockaddr *)&at, sizeof at) < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return e;
}

/* ---- System calls, each with arguments that are harmless if the kernel allows it ---- */

enum { MPTCP = 262, IO_URING_SETUP = 425, OPEN_TREE = 428, CLONE3 = 435 };

static void *do_nothing(void *ctx)
{
    return ctx;
}

static int try_thread(void)
{
    pthread_t thread;
    int e = pthread_create(&thread, NULL, do_nothing, NULL);
    return e ? e : pthread_join(thread, NULL);
}

static int try_fork(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid < 0 || waitpid(pid, &status, 0) != pid ? errno : status;
}

/* Executes a program that is a file in memory, which no rule for paths restricts. */
static int try_exec_memory(void)
{
    char *const none[] = {NULL};
    int status, fd = (int)syscall(SYS_memfd_create, "program", 1);
    pid_t pid = fork();
    if (pid == 0) {
        syscall(SYS_execveat, fd, "", none, none, AT_EMPTY_PATH);
        _exit(errno);
    }
    close(fd);
    return pid < 0 || waitpid(pid, &status, 0) != pid ? errno : WEXITSTATUS(status);
}

static long open_and_close(int family, int type, int protocol)
{
    int fd = socket(family, type | SOCK_CLOEXEC, protocol);
    return fd < 0 ? -1 : close(fd);
}

static long listen_without_bind(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), e = listen(fd, 1) < 0 ? errno : 0;
    close(fd);
    errno = e;
    return e ? -1 : 0;
}

static long read_memory_of(pid_t pid)
{
    char to[1];
    static char from[1];
    struct iovec ours = {to, 1}, theirs = {from, 1};
    return process_vm_readv(pid, &ours, 1, &theirs, 1, 0);
}

static long do_call(const char *name)
{
    if (strcmp(name, "ptrace") == 0)
        return ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
    if (strcmp(name, "process_vm_readv") == 0)
        return read_memory_of(getppid());
    if (strcmp(name, "own_memory") == 0)
        return read_memory_of(getpid());
    if (strcmp(name, "unshare") == 0)
        return unshare(CLONE_NEWUSER);
    if (strcmp(name, "clone3") == 0)
        return syscall(CLONE3, NULL, 0);
    if (strcmp(name, "mount") == 0)
        return mount(NULL, "/", NULL, 0x7fffffff, NULL);
    if (strcmp(name, "open_tree") == 0)
        return syscall(OPEN_TREE, -1, NULL, 0);
    if (strcmp(name, "bpf") == 0)
        return syscall(SYS_bpf, 0x7fffffff, NULL, 0);
    if (strcmp(name, "perf_event_open") == 0)
        return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);
    if (strcmp(name, "userfaultfd") == 0)
        return syscall(SYS_userfaultfd, 0x7fffffff);
    if (strcmp(name, "keyctl") == 0)
        return syscall(SYS_keyctl, 0, -3, 0);
    if (strcmp(name, "io_uring_setup") == 0)
        return syscall(IO_URING_SETUP, 0, NULL);
    if (strcmp(name, "open_by_handle_at") == 0)
        return syscall(SYS_open_by_handle_at, -1, NULL, 0);
    if (strcmp(name, "TIOCSTI") == 0)
        return ioctl(-1, TIOCSTI, NULL);
    if (strcmp(name, "FIONREAD") == 0)
        return ioctl(-1, FIONREAD, NULL);
    if (strcmp(name, "mptcp") == 0)
        return open_and_close(AF_INET, SOCK_STREAM, MPTCP);
    if (strcmp(name, "packet") == 0)
        return open_and_close(AF_PACKET, SOCK_DGRAM, 0);
    if (strcmp(name, "vsock") == 0)
        return open_and_close(AF_VSOCK, SOCK_STREAM, 0);
    if (strcmp(name, "netlink") == 0)
        return open_and_close(AF_NETLINK, SOCK_RAW, 0);
    if (strcmp(name, "listen") == 0)
        return listen_without_bind();
    errno = -1;
    return -1;
}

/* Connects by sending. */
static int try_fast_open(const char *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(port_of(mk_str_from_c(port))),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr *to = (const struct sockaddr *)&at;
    int e = sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, to, sizeof at) < 0 ? errno : 0;
    close(fd);
    return e;
}

static int try_call(const char *name)
{
    if (strcmp(name, "thread") == 0)
        return try_thread();
    if (strcmp(name, "fork") == 0)
        return try_fork();
    if (strcmp(name, "exec_memory") == 0)
        return try_exec_memory();
    return do_call(name) < 0 ? errno : 0;
}

/* ---- Requests ---- */

static int try_operation(mk_str operation, const char *text)
{
    struct addrinfo *found = NULL;
    char other[1000];
    if (mk_str_eq(operation, MK_STR("/create")))
        return try_open(text, O_RDWR | O_CREAT);
    if (mk_str_eq(operation, MK_STR("/read")))
        return try_open(text, O_RDONLY);
    if (mk_str_eq(operation, MK_STR("/mkdir")))
        return mkdir(text, 0700) < 0 ? errno : 0;
    if (mk_str_eq(operation, MK_STR("/remove")))
        return remove(text) < 0 ? errno : 0;
    if (mk_str_eq(operation, MK_STR("/connect")))
        return try_socket(connect, text);
    if (mk_str_eq(operation, MK_STR("/bind")))
        return try_socket(bind, text);
    if (mk_str_eq(operation, MK_STR("/fastopen")))
        return try_fast_open(text);
    if (mk_str_eq(operation, MK_STR("/call")))
        return try_call(text);
    if (mk_str_eq(operation, MK_STR("/rename"))) {
        (void)snprintf(other, sizeof other, "%s.new", text);
        return rename(text, other) < 0 ? errno : 0;
    }
    int e = getaddrinfo(text, NULL, NULL, &found);
    if (!e)
        freeaddrinfo(found);
    return e;
}

static enum mk_verdict respond(struct mk_request *request, struct mk_response *response, void *data)
{
    char text[1000], buf[20];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    (void)data;
    (void)snprintf(text, sizeof text, "%.*s", MK_STR_ARG(mk_request_query(request)));
    mk_buf_addf(&out, "%d", try_operation(mk_request_path(request), text));
    return mk_response_set_body(response, mk_buf_str(&out)) ? MK_ERROR : MK_DONE;
}

static const struct mk_handler handler = {.name = "sandbox-exceptions", .handle = respond};

MK_PLUGIN(sandbox_exceptions) = {
    MK_PLUGIN_HEAD,
    .name = "sandbox-exceptions",
    .sections = (const struct mk_conf_table *const[]){&table, NULL},
    .handlers = (const struct mk_handler *const[]){&handler, NULL},
    .load = load,
};
