/* SPDX-License-Identifier: Apache-2.0 */
/* Asks another service for each request, and answers with what it says and how long that took. Every wait is
 * a line of C; the worker serves others meanwhile. GATEWAY_TO names the other one: 127.0.0.1:3000. To pass
 * requests on as they are, a route to `proxy` needs no code at all. */
#include <arpa/inet.h>
#include <duda.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 5000, REPLY_MAX = 1 << 20 };

static struct sockaddr_in to;

static int start(struct mk_worker *worker)
{
    const char *text = getenv("GATEWAY_TO");
    mk_str port = mk_str_from_c(text ? text : "127.0.0.1:3000"), address = mk_str_cut(&port, ':');
    char room[INET_ADDRSTRLEN] = "";
    uint64_t number = 0;
    if (address.len < sizeof room)
        memcpy(room, address.p, address.len);
    to.sin_family = AF_INET;
    if (inet_pton(AF_INET, room, &to.sin_addr) == 1 && mk_num_parse(port, &number) && number < 65536) {
        to.sin_port = htons((uint16_t)number);
        return 0;
    }
    mk_worker_log(worker, MK_LOG_ERROR, "GATEWAY_TO must be ADDRESS:PORT, such as 127.0.0.1:3000");
    return -EINVAL;
}

static void hang_up(void *ctx)
{
    close((int)(intptr_t)ctx);
}

static int dial(struct duda *d)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int e = duda_defer(d, hang_up, (void *)(intptr_t)fd);
    if (e)
        return e;
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    if (errno != EINPROGRESS)
        return -errno;
    e = duda_ready(d, fd, MK_WRITABLE, PATIENCE_MS);
    return e < 0 ? e : fd;
}

/* HTTP/1.0: the answer ends with the connection, and is never chunked. */
static int ask(struct duda *d, int fd, mk_str target, struct mk_buf *reply)
{
    char room[4096];
    mk_str text = duda_print(d, "GET %.*s HTTP/1.0\r\nHost: gateway\r\n\r\n", MK_STR_ARG(target));
    if (!text.p)
        return -ENOMEM;
    ssize_t n = send(fd, text.p, text.len, MSG_NOSIGNAL);
    if (n != (ssize_t)text.len)
        return n < 0 ? -errno : -EIO;
    while ((n = recv(fd, room, sizeof room, 0)) != 0) {
        int e = n < 0 && errno != EAGAIN ? -errno : 0;
        if (!e && n < 0)
            e = duda_ready(d, fd, MK_READABLE, PATIENCE_MS);
        if (e < 0)
            return e;
        if (n > 0)
            mk_buf_add(reply, mk_str_of(room, (size_t)n));
    }
    return reply->failed ? -EMSGSIZE : 0;
}

static void free_reply(void *ctx)
{
    mk_buf_free(ctx);
}

static int pass(struct duda *d)
{
    struct mk_buf reply = mk_buf_growing(REPLY_MAX);
    uint64_t status = 0, begin = mk_worker_now_ms(duda_worker(d));
    int e = duda_defer(d, free_reply, &reply);
    int fd = e ? e : dial(d);
    e = fd < 0 ? fd : ask(d, fd, mk_request_raw_target(duda_request(d)), &reply);
    if (e == -ECANCELED)
        return e;
    mk_str rest = mk_buf_str(&reply), line = mk_str_cut(&rest, '\n');
    (void)mk_str_cut(&line, ' ');
    if (e || !mk_num_parse(mk_str_first(line, 3), &status))
        return duda_problem(d, e == -ETIMEDOUT ? 504 : 502, "the service behind does not answer");
    while (rest.len && mk_str_trim(mk_str_first(mk_str_cut(&rest, '\n'), 1)).len &&
           !mk_str_starts(rest, MK_STR("\r\n")))
        ;
    rest = mk_str_skip(rest, 2);
    const struct duda_named values[] = {
        {"status", duda_value_unsigned(status)},
        {"milliseconds", duda_value_unsigned(mk_worker_now_ms(duda_worker(d)) - begin)},
        {"content", duda_value_text(rest.p ? rest : MK_STR(""))},
    };
    return duda_json(d, duda_value_map(values, MK_LEN(values)));
}

DUDA_SERVICE(gateway, DUDA_START(start),
             DUDA_GET("/*path", pass, "Asks the other service for the same path."));
