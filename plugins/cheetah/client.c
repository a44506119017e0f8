/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client_conn.h"
#include "session.h"

#define PROMPT "monkey> "

enum { USAGE = 2, INPUT_MAX = 1 << 16 };

struct client {
    struct cheetah_client_conn line;
    bool json, interactive;
    int code; /* exit code of the first command that failed */
    bool quits;
    struct mk_buf in; /* input from stdin that is not yet processed */
};

static int print_usage(FILE *to, int code)
{
    fputs(
        "usage: monkey shell [-s SOCKET] [--json] [COMMAND...]\n"
        "\n"
        "Talks to the running server. Without a COMMAND it prompts for commands, or reads them from "
        "standard\n"
        "input, one per line. `monkey shell help` lists them.\n"
        "\n"
        "Changes of the servers of an [UPSTREAM], which apply to all workers at once:\n"
        "\n"
        "  upstream NAME drain SERVER [move]             no new clients; `move`: no sticky clients either\n"
        "  upstream NAME enable SERVER                   ends `drain`\n"
        "  upstream NAME weight SERVER N                 sets the weight, from 1 to 100\n"
        "  upstream NAME add SERVER [weight=N] [backup]  adds a server; MaxServers is the limit\n"
        "  upstream NAME remove SERVER                   removes it when its requests have ended\n"
        "\n"
        "With --save at the end, the change is written to the StateFile: it outlives reloads and restarts.\n"
        "\n"
        "  -s, --socket SOCKET  of the server, as in its [CHEETAH] (" CHEETAH_SOCKET ")\n"
        "  -j, --json           status, workers, connections and cache as JSON\n"
        "\n"
        "Exit codes: 0 success, 1 failure, 2 wrong usage.\n",
        to);
    return code;
}

/* ---- Commands ---- */

static bool is_any_of(mk_str line, const char *a, const char *b, const char *c)
{
    return mk_str_eq_nocase(line, mk_str_from_c(a)) || mk_str_eq_nocase(line, mk_str_from_c(b)) ||
           mk_str_eq(line, mk_str_from_c(c));
}

static int run_remote_command(struct client *c, mk_str command)
{
    char buf[CHEETAH_LINE_MAX];
    struct mk_buf line = mk_buf_fixed(buf, sizeof buf - 1);
    if (c->json)
        mk_buf_add(&line, MK_STR("json "));
    mk_buf_add(&line, command);
    if (line.failed) {
        fprintf(stderr, "%sa command has at most %d bytes\n", c->line.prefix, CHEETAH_LINE_MAX - 1);
        return USAGE;
    }
    return cheetah_client_conn_run_command(&c->line, mk_buf_str(&line));
}

static void run_command_line(struct client *c, mk_str line)
{
    int code = 0;
    line = mk_str_trim(line);
    if (!line.len || mk_str_starts(line, MK_STR("#")))
        return;
    if (is_any_of(line, "quit", "exit", "\\q"))
        c->quits = true;
    else if (is_any_of(line, "clear", "clear", "\\c"))
        fputs(c->interactive ? "\033[H\033[2J\033[3J" : "", stdout);
    else
        code = run_remote_command(c, line);
    if (!c->code)
        c->code = code;
}

static int run_command_from_args(struct client *c, char **words, int n)
{
    char buf[CHEETAH_LINE_MAX];
    struct mk_buf line = mk_buf_fixed(buf, sizeof buf);
    for (int i = 0; i < n; i++) {
        mk_buf_add(&line, i ? MK_STR(" ") : MK_STR(""));
        mk_buf_add(&line, mk_str_from_c(words[i]));
    }
    if (line.failed || mk_str_find(mk_buf_str(&line), '\n') != MK_STR_NONE) {
        fprintf(stderr, "monkey shell: a command is one line of at most %d bytes\n", CHEETAH_LINE_MAX - 1);
        return USAGE;
    }
    run_command_line(c, mk_buf_str(&line));
    return c->code;
}

/* ---- Lines of stdin ---- */

static void print_prompt(const struct client *c)
{
    if (c->interactive)
        fputs(PROMPT, stdout);
    fflush(stdout);
}

/* Waits for input. If the server ends the session in the meantime, the next command opens a new session. */
static bool wait_for_input(struct client *c)
{
    for (;;) {
        struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = c->line.fd, .events = POLLIN}};
        if (poll(p, c->line.fd >= 0 ? 2 : 1, -1) < 0 && errno != EINTR)
            return false;
        if (p[1].revents)
            cheetah_client_conn_check_eof(&c->line);
        if (p[0].revents)
            return true;
    }
}

/* Runs complete lines; the last line may lack its newline. */
static void run_buffered_lines(struct client *c, bool is_last)
{
    mk_str rest = mk_buf_str(&c->in);
    while (!c->quits && rest.len) {
        size_t len = mk_str_find(rest, '\n');
        if (len == MK_STR_NONE && !is_last)
            break;
        run_command_line(c, mk_str_first(rest, len == MK_STR_NONE ? rest.len : len));
        rest = mk_str_skip(rest, len == MK_STR_NONE ? rest.len : len + 1);
        if (c->code && !c->interactive && c->line.fd < 0)
            c->quits = true; /* not interactive: without a session, the remaining commands would also fail */
        if (!c->quits)
            print_prompt(c);
    }
    mk_buf_consume(&c->in, c->in.len - rest.len);
}

static int run_commands_of_stdin(struct client *c)
{
    char buf[4096];
    print_prompt(c);
    while (!c->quits && wait_for_input(c)) {
        ssize_t n = read(STDIN_FILENO, buf, sizeof buf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0)
            mk_buf_add(&c->in, mk_str_of(buf, (size_t)n));
        if (c->in.failed) {
            fprintf(stderr, "%sa command has at most %d bytes\n", c->line.prefix, CHEETAH_LINE_MAX - 1);
            c->code = USAGE;
            break;
        }
        run_buffered_lines(c, n <= 0);
        if (n <= 0) {
            fputs(c->interactive && !c->quits ? "\n" : "", stdout);
            break;
        }
    }
    return c->interactive ? 0 : c->code;
}

/* ---- The command ---- */

/* Returns the number of words used, or -1 - exit code. */
static int read_options(int argc, char **argv, struct client *c)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        mk_str option = mk_str_from_c(argv[i]);
        if (mk_str_eq(option, MK_STR("--")))
            return i + 1;
        if (mk_str_eq(option, MK_STR("-h")) || mk_str_eq(option, MK_STR("--help")))
            return -1 - print_usage(stdout, 0);
        if (mk_str_eq(option, MK_STR("-j")) || mk_str_eq(option, MK_STR("--json"))) {
            c->json = true;
        } else if ((mk_str_eq(option, MK_STR("-s")) || mk_str_eq(option, MK_STR("--socket"))) &&
                   i + 1 < argc) {
            c->line.path = argv[++i];
        } else if (mk_str_starts(option, MK_STR("--socket="))) {
            c->line.path = argv[i] + sizeof "--socket=" - 1;
        } else {
            fprintf(stderr, "monkey shell: unknown option, or option without its value: %s\n", argv[i]);
            return -1 - print_usage(stderr, USAGE);
        }
    }
    return i;
}

static int connect_and_greet(struct client *c)
{
    int code = cheetah_client_conn_open(&c->line);
    if (code || !c->interactive)
        return code;
    printf("%s at %s. `help` lists the commands.\n", c->line.greeting, c->line.path);
    return 0;
}

int cheetah_client_run(int argc, char **argv)
{
    struct client c = {.in = mk_buf_growing(INPUT_MAX)};
    cheetah_client_conn_init(&c.line, CHEETAH_SOCKET);
    int taken = read_options(argc, argv, &c);
    if (taken < 0)
        return -1 - taken;
    if (!*c.line.path || strlen(c.line.path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        fprintf(stderr, "monkey shell: invalid socket path: %s\n", c.line.path);
        return USAGE;
    }
    c.interactive = taken == argc && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    c.line.prefix = c.interactive ? "" : "monkey shell: ";
    int code = connect_and_greet(&c);
    if (!code)
        code =
            taken < argc ? run_command_from_args(&c, argv + taken, argc - taken) : run_commands_of_stdin(&c);
    cheetah_client_conn_close(&c.line);
    mk_buf_free(&c.line.in);
    mk_buf_free(&c.in);
    return code;
}
