/* SPDX-License-Identifier: Apache-2.0 */
/* Helper program of test_clients.py: connects to a TLS server with the client of src/tls, sends a string and
 * prints the response. Each connection resumes the session of the previous one. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"
#include "event/tls.h"

enum { PATIENCE_MS = 20000, ROOM = 65536 };

struct call {
    const char *address, *name, *text;
    unsigned port, times;
    bool half_closes, greets;
    struct mk_tls_client_settings rules;
};

extern const struct mk_tls_module mk_tls_module;
static const struct mk_tls_module *const tls = &mk_tls_module;

static int stop(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    return 2;
}

/* Waits until the stream is ready; returns false if that takes too long. */
static bool wait_for(struct mk_stream *s, short what)
{
    struct pollfd p = {.fd = s->fd, .events = what};
    if (s->holds)
        return true;
    bool came = poll(&p, 1, PATIENCE_MS) > 0;
    s->dry = false;
    return came;
}

static int dial(const struct call *c)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)c->port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || inet_pton(AF_INET, c->address, &to.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&to, sizeof to) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return -1;
    return fd;
}

static mk_err shake_hands(struct mk_stream *s, const char **why)
{
    mk_err e;
    *why = "it takes too long";
    while ((e = tls->handshake(s, why)) == -EAGAIN)
        if (!wait_for(s, POLLIN))
            break;
    return e;
}

static ssize_t write_all(struct mk_stream *s, mk_str text)
{
    while (text.len) {
        ssize_t n = s->ops->write(s, text, false);
        if (n == -EAGAIN && wait_for(s, POLLOUT))
            continue;
        if (n < 0)
            return n;
        text = mk_str_skip(text, (size_t)n);
    }
    return 0;
}

/* Reads until the connection ends or, with `lines`, until a line is complete. Returns 0 in both cases. */
static ssize_t receive(struct mk_stream *s, bool lines)
{
    static char buffer[ROOM];
    for (;;) {
        ssize_t n = s->ops->read(s, buffer, sizeof buffer);
        if (n == -EAGAIN && wait_for(s, POLLIN))
            continue;
        if (n <= 0)
            return n;
        fwrite(buffer, 1, (size_t)n, stdout);
        if (lines && buffer[n - 1] == '\n')
            return 0;
    }
}

static void report(struct mk_stream *s, ssize_t e, bool ended)
{
    const char *why = "";
    if (e == 0) {
        printf("%s\n", ended ? "ended" : "continues");
    } else {
        (void)tls->handshake(s, &why);
        printf("failed: %s: %s\n", strerror((int)-e), why);
    }
}

static void serve_request(const struct call *c, struct mk_stream *s)
{
    struct mk_tls_conn_info facts;
    tls->facts(s, &facts);
    printf("%.*s %s\n", MK_STR_ARG(facts.version), facts.resumed ? "resumed" : "new");
    fflush(stdout);
    ssize_t e = write_all(s, mk_str_from_c(c->text));
    if (!e && c->half_closes)
        s->ops->shutdown(s);
    if (!e)
        e = receive(s, c->greets);
    if (!e && c->greets) { /* tells the test that it may now change the server */
        report(s, e, false);
        fflush(stdout);
        (void)getchar();
        e = receive(s, false);
    }
    report(s, e, true);
}

static int run(const struct call *c)
{
    struct mk_tls_session *session = NULL;
    struct mk_tls_client *client;
    struct mk_tls_settings_error problem;
    if (tls->client_new(&c->rules, &client, &problem))
        return stop(problem.file ? problem.file : "rules", problem.text);
    for (unsigned i = 0; i < c->times; i++) {
        struct mk_stream s = {.fd = -1};
        const char *why;
        int fd = dial(c);
        if (fd < 0 || tls->connect(&s, fd, client, c->name, &session, false))
            return stop("connect", "failed");
        mk_err e = shake_hands(&s, &why);
        if (e)
            printf("failed: %s: %s\n", strerror(-e), why);
        else
            serve_request(c, &s);
        s.ops->close(&s);
    }
    tls->session_free(session);
    tls->client_free(client);
    return 0;
}

static unsigned number_of(const char *text)
{
    uint64_t n = 0;
    (void)mk_num_parse(mk_str_from_c(text), &n);
    return (unsigned)n;
}

/* Returns false for an unknown option. */
static bool read_option(struct call *c, const char *option, const char *value)
{
    if (strcmp(option, "authority") == 0)
        c->rules.authority = value;
    else if (strcmp(option, "certificate") == 0)
        c->rules.certificate = value;
    else if (strcmp(option, "key") == 0)
        c->rules.key = value;
    else if (strcmp(option, "verifies") == 0)
        c->rules.verifies = *value == 'y';
    else if (strcmp(option, "times") == 0)
        c->times = number_of(value);
    else if (strcmp(option, "text") == 0)
        c->text = value;
    else if (strcmp(option, "half-closes") == 0)
        c->half_closes = *value == 'y';
    else if (strcmp(option, "greets") == 0)
        c->greets = *value == 'y';
    else
        return false;
    return true;
}

/* ADDRESS PORT NAME [OPTION VALUE]... */
int main(int argc, char **argv)
{
    if (argc < 4)
        return stop("usage", "ADDRESS PORT NAME [OPTION VALUE]...");
    struct call c = {.address = argv[1],
                     .port = number_of(argv[2]),
                     .name = argv[3],
                     .text = "",
                     .times = 1,
                     .rules.verifies = true};
    for (int i = 4; i + 1 < argc; i += 2)
        if (!read_option(&c, argv[i], argv[i + 1]))
            return stop("unknown option", argv[i]);
    return run(&c);
}
