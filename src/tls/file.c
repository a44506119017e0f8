/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/file.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 4 * 1024 * 1024 }; /* CA lists are long */

static mk_err set_read_error(struct mk_tls_settings_error *p, const char *file, const char *what,
                             const char *error)
{
    return mk_tls_settings_error_set(p, file, "cannot read the %s: %s", what, error);
}

static mk_err read_fd_to_bio(int fd, BIO *into)
{
    char buf[4096];
    ssize_t n;
    size_t total = 0;
    while ((n = read(fd, buf, sizeof buf)) > 0) {
        total += (size_t)n;
        if (total > FILE_MAX)
            return -EFBIG;
        if (BIO_write(into, buf, (int)n) != n)
            return -ENOMEM;
    }
    return n < 0 ? mk_err_last() : 0;
}

static mk_err read_regular_file(int fd, bool foreign, BIO *into)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return mk_err_last();
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (foreign && st.st_nlink > 1)
        return -ELOOP;
    return S_ISREG(st.st_mode) ? read_fd_to_bio(fd, into) : -EINVAL;
}

/* Does not follow a link in place of a foreign file or of its folder, which may belong to the same user. Returns a
 * descriptor, or -1 and errno. */
static int open_foreign_file(const char *file, int flags)
{
    char folder[PATH_MAX];
    mk_str path = mk_str_from_c(file);
    size_t slash = mk_str_find_last(path, '/');
    if (slash == MK_STR_NONE || slash == 0 || slash >= sizeof folder)
        return open(file, flags | O_NOFOLLOW);
    memcpy(folder, file, slash);
    folder[slash] = '\0';
    int at = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (at < 0)
        return -1;
    int fd = openat(at, file + slash + 1, flags | O_NOFOLLOW), e = errno;
    (void)close(at);
    errno = e;
    return fd;
}

mk_err mk_tls_file_read_to_bio(const char *file, bool foreign, const char *what, BIO **out,
                               struct mk_tls_settings_error *problem)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int fd = foreign ? open_foreign_file(file, flags) : open(file, flags);
    if (fd < 0)
        return set_read_error(problem, file, what, strerror(errno));
    BIO *b = BIO_new(BIO_s_mem());
    mk_err e = b ? read_regular_file(fd, foreign, b) : -ENOMEM;
    (void)close(fd);
    if (!e && BIO_pending(b) == 0) {
        BIO_free(b);
        return set_read_error(problem, file, what, "the file is empty");
    }
    if (e) {
        BIO_free(b);
        return set_read_error(problem, file, what, e == -EINVAL ? "it is not a file" : strerror(-e));
    }
    BIO_set_mem_eof_return(b, 0);
    *out = b;
    return 0;
}

mk_err mk_tls_file_text_to_bio(const char *text, const char *name, const char *what, BIO **out,
                               struct mk_tls_settings_error *problem)
{
    size_t len = strlen(text);
    if (len == 0 || len > FILE_MAX)
        return set_read_error(problem, name, what, len ? strerror(EFBIG) : "the text is empty");
    *out = BIO_new_mem_buf(text, (int)len); /* without a copy */
    return *out ? 0 : -ENOMEM;
}

int mk_tls_file_refuse_password_cb(char *buf, int cap, int for_writing, void *unused)
{
    (void)buf;
    (void)cap;
    (void)for_writing;
    (void)unused;
    return -1;
}
