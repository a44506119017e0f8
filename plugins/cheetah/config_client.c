/* SPDX-License-Identifier: Apache-2.0 */
#include "config_client.h"

#include <signal.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include "client_conn.h"
#include "reload.h"

enum { USAGE = 2, TIMEOUT_S = 30, SPARE_S = 5 };

struct arguments {
    const char *name; /* of the command */
    const char *socket;
    uint32_t timeout_s;
    const char *confirm, *number; /* NULL: not given */
};

static int print_usage(const char *name, FILE *to, int code)
{
    bool reloads = strcmp(name, "reload") == 0, rolls_back = strcmp(name, "rollback") == 0;
    fprintf(to, "usage: monkey %s [-s SOCKET] [--timeout TIME]%s\n\n", name,
            reloads      ? " [--confirm TIME]"
            : rolls_back ? " [NUMBER]"
                         : "");
    fputs(reloads ? "Reloads the configuration, and waits until new workers serve it.\n\n"
                    "  --confirm TIME       return to the old configuration after TIME, such as 60s or 10m,\n"
                    "                       unless you run `monkey confirm`\n"
          : rolls_back
              ? "Returns to an earlier configuration: to the one that was confirmed last if the current one "
                "is\n"
                "not confirmed, to NUMBER, or to the previous one. `monkey configurations` lists them.\n\n"
              : "Keeps the configuration that `monkey reload --confirm` has loaded.\n\n",
          to);
    fputs("  --timeout TIME       how long to wait for the result (30s)\n"
          "  -s, --socket SOCKET  of the server, as in its [CHEETAH] (" CHEETAH_SOCKET ")\n\n"
          "Exit codes: 0 success, 1 failure, 2 wrong usage.\n",
          to);
    return code;
}

static int reject_argument(const struct arguments *a, const char *word)
{
    fprintf(stderr, "monkey %s: invalid argument or value: %s\n", a->name, word);
    return -1 - print_usage(a->name, stderr, USAGE);
}

/* Returns 0, or -1 - exit code. */
static int parse_arguments(struct arguments *a, int argc, char **argv)
{
    bool reloads = strcmp(a->name, "reload") == 0, rolls_back = strcmp(a->name, "rollback") == 0;
    for (int i = 1; i < argc; i++) {
        mk_str word = mk_str_from_c(argv[i]), value = mk_str_from_c(i + 1 < argc ? argv[i + 1] : NULL);
        uint32_t seconds;
        uint64_t number;
        if (mk_str_eq(word, MK_STR("-h")) || mk_str_eq(word, MK_STR("--help")))
            return -1 - print_usage(a->name, stdout, 0);
        if ((mk_str_eq(word, MK_STR("-s")) || mk_str_eq(word, MK_STR("--socket"))) && value.len)
            a->socket = argv[++i];
        else if (mk_str_eq(word, MK_STR("--timeout")) && cheetah_reload_parse_time(value, &a->timeout_s))
            i++;
        else if (reloads && mk_str_eq(word, MK_STR("--confirm")) &&
                 cheetah_reload_parse_time(value, &seconds))
            a->confirm = argv[++i];
        else if (rolls_back && !a->number && mk_num_parse(word, &number))
            a->number = argv[i];
        else
            return reject_argument(a, argv[i]);
    }
    return strlen(a->socket) < sizeof(((struct sockaddr_un *)0)->sun_path) ? 0
                                                                           : reject_argument(a, a->socket);
}

/* The server responds in time, or is blocked. */
static void on_alarm(int signal)
{
    static const char text[] = "monkey: the server has not responded in time\n";
    (void)signal;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(1);
}

static void write_command(struct mk_buf *line, const struct arguments *a)
{
    mk_buf_addf(line, "%s", a->name);
    if (strcmp(a->name, "confirm") != 0)
        mk_buf_addf(line, " --timeout %us", a->timeout_s);
    if (a->confirm)
        mk_buf_addf(line, " --confirm %s", a->confirm);
    if (a->number)
        mk_buf_addf(line, " %s", a->number);
}

static int run_command(const char *name, int argc, char **argv)
{
    struct arguments a = {.name = name, .socket = CHEETAH_SOCKET, .timeout_s = TIMEOUT_S};
    struct cheetah_client_conn conn;
    char buf[256], prefix[32];
    struct mk_buf line = mk_buf_fixed(buf, sizeof buf);
    int code = parse_arguments(&a, argc, argv);
    if (code < 0)
        return -1 - code;
    write_command(&line, &a);
    snprintf(prefix, sizeof prefix, "monkey %s: ", name);
    cheetah_client_conn_init(&conn, a.socket);
    conn.command = name;
    conn.prefix = prefix;
    signal(SIGALRM, on_alarm);
    alarm(a.timeout_s + SPARE_S);
    code = cheetah_client_conn_run_command(&conn, mk_buf_str(&line));
    cheetah_client_conn_close(&conn);
    mk_buf_free(&conn.in);
    return code;
}

int cheetah_config_client_reload(int argc, char **argv)
{
    return run_command("reload", argc, argv);
}

int cheetah_config_client_confirm(int argc, char **argv)
{
    return run_command("confirm", argc, argv);
}

int cheetah_config_client_rollback(int argc, char **argv)
{
    return run_command("rollback", argc, argv);
}
