/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sandbox.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/fd.h"

/* Rights and scopes of Landlock ABIs after the first, which the build machine's headers may lack. */
enum {
    ACCESS_REFER = 1 << 13,         /* ABI 2 */
    ACCESS_TRUNCATE = 1 << 14,      /* ABI 3 */
    ACCESS_IOCTL_DEV = 1 << 15,     /* ABI 5 */
    SCOPE_ABSTRACT_SOCKET = 1 << 0, /* ABI 6 */
    SCOPE_SIGNAL = 1 << 1,
};

enum {
    READ_RIGHTS = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
    WRITE_RIGHTS = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR |
                   LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | ACCESS_REFER |
                   ACCESS_TRUNCATE | ACCESS_IOCTL_DEV, /* used as far as the kernel supports them */
    ALL_RIGHTS = (1 << 13) - 1,                        /* all rights of ABI 1 */
};

/* The master may have capabilities without being root, to listen on a port below 1024. */
static mk_err drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    return geteuid() != 0 && syscall(SYS_capset, &head, none) < 0 ? mk_err_last() : 0;
}

mk_err mk_sandbox_drop_privileges(void)
{
    mk_err e = drop_capabilities();
    return !e && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? mk_err_last() : e;
}

static uint64_t supported_rights(int abi)
{
    uint64_t rights = ALL_RIGHTS;
    if (abi >= 2)
        rights |= ACCESS_REFER;
    if (abi >= 3)
        rights |= ACCESS_TRUNCATE;
    if (abi >= 5)
        rights |= ACCESS_IOCTL_DEV;
    return rights;
}

/* Layout since Landlock ABI 6; members that an older kernel does not know must be 0. */
struct ruleset {
    uint64_t handled_access_fs, handled_access_net, scoped;
};

/* Returns the scopes that the kernel supports. They keep a sandboxed process from connecting to abstract
 * sockets outside the sandbox and from sending signals to processes there. */
static uint64_t supported_scopes(int abi)
{
    return abi >= 6 ? SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL : 0;
}

int mk_sandbox_abi(void)
{
    return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

mk_err mk_sandbox_open(struct mk_sandbox *s)
{
    s->fd = -1;
    s->abi = mk_sandbox_abi();
    if (s->abi < 1)
        return -EOPNOTSUPP;
    struct ruleset attr = {.handled_access_fs = supported_rights(s->abi), .scoped = supported_scopes(s->abi)};
    s->fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    return s->fd < 0 ? mk_err_last() : 0;
}

static mk_err add_landlock_rule(struct mk_sandbox *s, int fd, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {.parent_fd = fd, .allowed_access = rights};
    long r = syscall(SYS_landlock_add_rule, s->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    return r < 0 ? mk_err_last() : 0;
}

mk_err mk_sandbox_allow_fd(struct mk_sandbox *s, int fd)
{
    struct stat st;
    if (s->fd < 0)
        return 0;
    if (fstat(fd, &st) < 0)
        return mk_err_last();
    return add_landlock_rule(s, fd, S_ISDIR(st.st_mode) ? READ_RIGHTS : LANDLOCK_ACCESS_FS_READ_FILE);
}

mk_err mk_sandbox_allow(struct mk_sandbox *s, const char *path)
{
    if (s->fd < 0)
        return 0;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : mk_err_last();
    mk_err e = mk_sandbox_allow_fd(s, fd);
    close(fd);
    return e;
}

static mk_err allow_folder(struct mk_sandbox *s, const char *folder, uint64_t rights)
{
    if (s->fd < 0)
        return 0;
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mk_err_last();
    mk_err e = add_landlock_rule(s, fd, rights & supported_rights(s->abi));
    close(fd);
    return e;
}

mk_err mk_sandbox_allow_spooling(struct mk_sandbox *s, const char *folder)
{
    return allow_folder(s, folder, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
}

mk_err mk_sandbox_allow_writing(struct mk_sandbox *s, const char *folder)
{
    return allow_folder(s, folder, READ_RIGHTS | WRITE_RIGHTS);
}

/* ---- Files read by libraries ---- */

/* Consecutive NUL-terminated paths. */
static mk_err allow_paths(struct mk_sandbox *s, const char *paths)
{
    mk_err first = 0;
    for (; *paths; paths += strlen(paths) + 1) {
        mk_err e = mk_sandbox_allow(s, paths);
        first = first ? first : e;
    }
    return first;
}

/* If /etc/resolv.conf is a link to a file outside /etc, which a daemon may replace, allows the folder of that
 * file. */
static mk_err allow_resolver(struct mk_sandbox *s)
{
    char target[PATH_MAX];
    if (!realpath("/etc/resolv.conf", target))
        return 0;
    *strrchr(target, '/') = '\0';
    return *target && strcmp(target, "/etc") != 0 ? mk_sandbox_allow(s, target) : 0;
}

/* Allows the folder of libc, where its modules (nsswitch.conf) and their dependencies are. */
static mk_err allow_nss_modules(struct mk_sandbox *s)
{
    char folder[PATH_MAX];
    Dl_info libc;
    void *symbol = dlsym(RTLD_DEFAULT, "gai_strerror");
    if (!symbol || !dladdr(symbol, &libc) || !realpath(libc.dli_fname, folder))
        return 0;
    *strrchr(folder, '/') = '\0';
    return *folder ? mk_sandbox_allow(s, folder) : 0;
}

mk_err mk_sandbox_allow_resolver(struct mk_sandbox *s)
{
    mk_err e =
        allow_paths(s, "/etc/hosts\0/etc/resolv.conf\0/etc/nsswitch.conf\0/etc/gai.conf\0/etc/host.conf\0"
                       "/etc/services\0/etc/protocols\0/etc/ld.so.cache\0");
    mk_err resolver = allow_resolver(s), modules = allow_nss_modules(s);
    return e ? e : resolver ? resolver : modules;
}

/* Does not allow all of /etc/ssl and /etc/pki, because they also contain private keys. */
mk_err mk_sandbox_allow_trust_store(struct mk_sandbox *s)
{
    mk_err e =
        allow_paths(s, "/etc/ssl/certs\0/etc/ssl/cert.pem\0/etc/ssl/ca-bundle.pem\0/etc/ssl/openssl.cnf\0"
                       "/etc/pki/tls/certs\0/etc/pki/tls/cert.pem\0/etc/pki/tls/openssl.cnf\0"
                       "/etc/pki/ca-trust\0/etc/ca-certificates\0/etc/crypto-policies\0"
                       "/usr/share/ca-certificates\0/usr/local/share/ca-certificates\0/usr/lib/ssl\0"
                       "/usr/share/crypto-policies\0/var/lib/ca-certificates\0");
    static const char *const variables[] = {"SSL_CERT_FILE", "SSL_CERT_DIR"}; /* of OpenSSL */
    for (size_t i = 0; i < MK_LEN(variables); i++) {
        const char *path = getenv(variables[i]);
        mk_err own = path ? mk_sandbox_allow(s, path) : 0;
        e = e ? e : own;
    }
    return e;
}

mk_err mk_sandbox_enforce(struct mk_sandbox *s)
{
    if (s->fd < 0)
        return 0;
    mk_err e = syscall(SYS_landlock_restrict_self, s->fd, 0) < 0 ? mk_err_last() : 0;
    mk_fd_close(&s->fd);
    return e;
}

void mk_sandbox_scope_signals(void)
{
    struct ruleset attr = {.scoped = supported_scopes(mk_sandbox_abi()) & SCOPE_SIGNAL};
    if (!attr.scoped)
        return;
    struct mk_sandbox s = {.fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0)};
    (void)!mk_sandbox_enforce(&s);
}
