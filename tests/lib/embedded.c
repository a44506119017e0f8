/* SPDX-License-Identifier: Apache-2.0 */
/* embedded -c FILE: serves a configuration through the library, so that the server's tests also test the
 * library. It supports what these tests need: the key `Workers`, SIGTERM and SIGQUIT, and the server's output
 * with its addresses. */
#include <errno.h>
#include <monkey/server.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void on_log_line(void *ctx, enum mk_log_level level, mk_str text)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    char line[1280];
    (void)ctx;
    int len = snprintf(line, sizeof line, "[%s] %d: %.*s\n", names[level], (int)getpid(), MK_STR_ARG(text));
    (void)!write(STDERR_FILENO, line, (size_t)len);
}

static unsigned threads_of(const char *path)
{
    char line[4096];
    unsigned n = 1;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        (void)sscanf(line, " Workers %u", &n);
    if (f)
        (void)fclose(f);
    return n ? n : 1;
}

/* Prints all addresses with a single write, as the tests expect. */
static void print_addresses(const struct mk_server *s)
{
    char address[192], text[16 * 1024] = "Monkey serves at\n";
    for (size_t i = 0; mk_server_address(s, i, address, sizeof address) == 0; i++) {
        size_t len = strlen(text);
        char *flags = strchr(address, ' ');
        const char *scheme = flags && strcmp(flags, " tls") == 0 ? "https://" : "http://";
        if (flags)
            *flags = '\0';
        if (strncmp(address, "unix:", 5) == 0)
            (void)snprintf(text + len, sizeof text - len, "  %s\n", address);
        else
            (void)snprintf(text + len, sizeof text - len, "  %s%s/\n", scheme, address);
    }
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

static void serve(struct mk_server *s, const sigset_t *ours)
{
    int number = 0;
    print_addresses(s);
    while (sigwait(ours, &number) == 0 && number != SIGTERM && number != SIGINT) {
        mk_server_stop(s, MK_FOREVER);
        if (mk_server_wait(s) == 0)
            return;
    }
    mk_server_stop(s, 0);
}

int main(int argc, char **argv)
{
    const struct mk_server_options options = {.size = sizeof options, .on_log = on_log_line};
    struct mk_server *s = mk_server_new(&options);
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGQUIT);
    sigprocmask(SIG_BLOCK, &ours, NULL);
    if (argc != 3 || strcmp(argv[1], "-c") != 0)
        return 2;
    int e = mk_server_load_config(s, argv[2]);
    if (!e)
        e = mk_server_start(s, threads_of(argv[2]));
    if (*mk_server_error(s))
        fprintf(stderr, "%s\n", mk_server_error(s));
    if (!e)
        serve(s, &ours);
    mk_server_free(s);
    return e == -EINVAL ? 3 : e ? 1 : 0;
}
