/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/options.h"

#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "wr/message.h"

const char wr_options_help[] =
    "usage: wr [options] -- CLIENT COMMAND        as in: wr -p 80 -c 100 -l 1000 -s 100 -- wrk -d 5 URL\n"
    "\n"
    "Watches a server while a load client runs, for one or many numbers of connections.\n"
    "Clients: wrk, h2load, weighttp, ab, siege, pace.\n"
    "\n"
    "The server, with all of its children (default: the processes that listen on the URL's port):\n"
    "  -p, --pid PID          its process; may be repeated\n"
    "      --port PORT        the processes that listen on the port\n"
    "      --name NAME        the processes with that name\n"
    "      --cgroup FOLDER    the control group that contains only the server and counts its processor time\n"
    "\n"
    "The sweep:\n"
    "  -c, --from N           connections of the first step; replaces {c} in the command, or adds -c N\n"
    "  -l, --last N           connections of the last step\n"
    "  -s, --step N           how many connections each step adds\n"
    "      --steps N,N,...    a list of steps instead\n"
    "  -n, --shots N          shots for each step (1)\n"
    "      --warm-up N|Ns     first run N shots, or one of N seconds, that do not count\n"
    "      --interval MS      sample the server this often (100)\n"
    "      --limit SECONDS    a shot that takes longer is an error (600)\n"
    "      --client-cores L   run the client and wr on these cores, such as 1 or 2-3\n"
    "      --syscalls         count system calls in one more shot for each step (as root)\n"
    "\n"
    "The response check before any load:\n"
    "      --status N         expected status (200)\n"
    "      --length N         expected number of bytes of content\n"
    "      --sha1 HEX         expected SHA-1 of the content\n"
    "      --url URL          check this URL instead of the one in the command\n"
    "      --unchecked        skip the check\n"
    "\n"
    "Output:\n"
    "      --csv FILE         write a line for each shot\n"
    "      --json [FILE]      write all measurements; without FILE, instead of the table\n"
    "  -q, --quiet            no progress line on a terminal\n"
    "  -v, --version          print the version and exit\n"
    "  -h, --help             print this and exit\n"
    "\n"
    "The syntax of the first wr, wr -p PID [-c N -l N -s N] [-r REQUESTS] [-k] URL, runs weighttp with 10\n"
    "threads.\n"
    "\n"
    "Exit: 0 success; 1 failure, or over 1 % error responses without --json; 2 wrong usage.\n";

enum {
    PORT = 1,
    NAME,
    CGROUP,
    STEPS,
    WARM_UP,
    INTERVAL,
    LIMIT,
    CLIENT_CORES,
    SYSCALLS,
    STATUS,
    LENGTH,
    SHA1,
    URL,
    UNCHECKED,
    CSV,
    JSON,
};

static const struct option NAMES[] = {
    {"pid", required_argument, NULL, 'p'},
    {"port", required_argument, NULL, PORT},
    {"name", required_argument, NULL, NAME},
    {"cgroup", required_argument, NULL, CGROUP},
    {"from", required_argument, NULL, 'c'},
    {"last", required_argument, NULL, 'l'},
    {"step", required_argument, NULL, 's'},
    {"steps", required_argument, NULL, STEPS},
    {"shots", required_argument, NULL, 'n'},
    {"warm-up", required_argument, NULL, WARM_UP},
    {"interval", required_argument, NULL, INTERVAL},
    {"limit", required_argument, NULL, LIMIT},
    {"client-cores", required_argument, NULL, CLIENT_CORES},
    {"syscalls", no_argument, NULL, SYSCALLS},
    {"status", required_argument, NULL, STATUS},
    {"length", required_argument, NULL, LENGTH},
    {"sha1", required_argument, NULL, SHA1},
    {"url", required_argument, NULL, URL},
    {"unchecked", no_argument, NULL, UNCHECKED},
    {"csv", required_argument, NULL, CSV},
    {"json", optional_argument, NULL, JSON},
    {"requests", required_argument, NULL, 'r'},
    {"keep-alive", no_argument, NULL, 'k'},
    {"quiet", no_argument, NULL, 'q'},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct option_parser {
    struct wr_options *out;
    uint64_t from, last, step;
    bool has_server;
};

static bool select_server_by(struct option_parser *p, enum wr_find_by by)
{
    struct wr_options *o = p->out;
    if (o->names_server && (o->server.by != by || by != WR_FIND_BY_PID))
        return wr_message_error("use only one of --pid, --port and --name");
    o->names_server = true;
    o->server.by = by;
    return true;
}

static bool parse_pid(struct option_parser *p, const char *text)
{
    struct wr_find *server = &p->out->server;
    uint64_t pid;
    if (!select_server_by(p, WR_FIND_BY_PID) ||
        !load_option_parse_number(wr_message_error, "--pid", text, 1, INT_MAX, &pid))
        return false;
    if (server->n_pids == WR_FIND_PIDS_MAX)
        return wr_message_error("--pid may be repeated at most %d times", WR_FIND_PIDS_MAX);
    server->pids[server->n_pids++] = (pid_t)pid;
    return true;
}

static bool parse_port(struct option_parser *p, const char *text)
{
    uint64_t port;
    if (!select_server_by(p, WR_FIND_BY_PORT) ||
        !load_option_parse_number(wr_message_error, "--port", text, 1, 65535, &port))
        return false;
    p->out->server.port = (unsigned)port;
    return true;
}

static bool add_step(struct wr_options *o, uint64_t step)
{
    if (o->n_steps == WR_OPTIONS_STEPS_MAX)
        return wr_message_error("more than %d steps", WR_OPTIONS_STEPS_MAX);
    o->steps[o->n_steps++] = (unsigned)step;
    return true;
}

static bool parse_steps(struct wr_options *o, const char *text)
{
    o->n_steps = 0;
    for (mk_str rest = mk_str_from_c(text); rest.p;) {
        uint64_t n;
        mk_str part = mk_str_cut(&rest, ',');
        if (!mk_num_parse(part, &n) || n == 0 || n > INT_MAX)
            return wr_message_error("--steps expects numbers such as 1,10,100, not \"%s\"", text);
        if (!add_step(o, n))
            return false;
    }
    return true;
}

/* Parses "2" (shots) or "1.5s" (a duration). */
static bool parse_warm_up(struct wr_options *o, const char *text)
{
    char *end;
    double seconds = strtod(text, &end);
    uint64_t shots;
    if (end != text && strcmp(end, "s") == 0 && seconds > 0 && seconds <= 3600) {
        o->warm_up_us = (uint64_t)(seconds * 1e6);
        return true;
    }
    if (!mk_num_parse(mk_str_from_c(text), &shots) || shots > WR_OPTIONS_SHOTS_MAX)
        return wr_message_error(
            "--warm-up expects a number of shots such as 1, or of seconds such as 2s, not \"%s\"", text);
    o->warm_up_shots = (unsigned)shots;
    return true;
}

static bool parse_client_cores(struct wr_options *o, const char *text)
{
    o->has_client_cores = true;
    return wr_proc_parse_cpu_list(mk_str_from_c(text), &o->client_cores) ||
           wr_message_error("--client-cores expects cores such as 1 or 2-3, not \"%s\"", text);
}

static bool parse_number_option(struct option_parser *p, int letter, const char *text)
{
    struct wr_options *o = p->out;
    uint64_t n;
    switch (letter) {
    case 'c':
        return load_option_parse_number(wr_message_error, "-c", text, 1, INT_MAX, &p->from);
    case 'l':
        return load_option_parse_number(wr_message_error, "-l", text, 1, INT_MAX, &p->last);
    case 's':
        return load_option_parse_number(wr_message_error, "-s", text, 1, INT_MAX, &p->step);
    case 'n':
        if (!load_option_parse_number(wr_message_error, "-n", text, 1, WR_OPTIONS_SHOTS_MAX, &n))
            return false;
        o->shots = (unsigned)n;
        return true;
    case INTERVAL:
        if (!load_option_parse_number(wr_message_error, "--interval", text, 1, 60000, &n))
            return false;
        o->interval_us = n * 1000;
        return true;
    case LIMIT:
        if (!load_option_parse_number(wr_message_error, "--limit", text, 1, 86400, &n))
            return false;
        o->limit_us = n * 1000000;
        return true;
    default:
        return load_option_parse_number(wr_message_error, "-r", text, 1, INT64_MAX, &o->requests);
    }
}

/* The next word is the file of --json only if a "--" follows it; otherwise it may be the client. */
static void parse_json_option(struct wr_options *o, int argc, char **argv)
{
    o->json = optarg ? optarg : "-";
    if (optarg || optind >= argc || (argv[optind][0] == '-' && argv[optind][1]))
        return;
    for (int i = optind + 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0) {
            o->json = argv[optind++];
            return;
        }
}

static void set_flag(struct wr_options *o, int letter)
{
    switch (letter) {
    case SYSCALLS:
        o->counts_syscalls = true;
        break;
    case UNCHECKED:
        o->unchecked = true;
        break;
    case 'k':
        o->keep_alive = true;
        break;
    case 'q':
        o->quiet = true;
        break;
    case 'v':
        o->version = true;
        break;
    default:
        o->help = true;
        break;
    }
}

static bool parse_option(struct option_parser *p, int letter)
{
    struct wr_options *o = p->out;
    switch (letter) {
    case 'p':
        return parse_pid(p, optarg);
    case PORT:
        return parse_port(p, optarg);
    case NAME:
        o->server.name = optarg;
        return select_server_by(p, WR_FIND_BY_NAME);
    case CGROUP:
        o->server.cgroup = optarg;
        return true;
    case STEPS:
        return parse_steps(o, optarg);
    case WARM_UP:
        return parse_warm_up(o, optarg);
    case CLIENT_CORES:
        return parse_client_cores(o, optarg);
    case STATUS:
        return load_option_parse_status(wr_message_error, optarg, &o->expected);
    case LENGTH:
        return load_option_parse_length(wr_message_error, optarg, &o->expected);
    case SHA1:
        return load_option_parse_sha1(wr_message_error, optarg, &o->expected);
    case URL:
        o->url = optarg;
        return true;
    case CSV:
        o->csv = optarg;
        return true;
    case 'c':
    case 'l':
    case 's':
    case 'n':
    case 'r':
    case INTERVAL:
    case LIMIT:
        return parse_number_option(p, letter, optarg);
    default:
        set_flag(o, letter);
        return true;
    }
}

static bool finish_options(struct option_parser *p, int argc, char **argv)
{
    struct wr_options *o = p->out;
    if ((p->from || p->last || p->step) && o->n_steps)
        return wr_message_error("use either --steps, or -c, -l and -s");
    if ((p->last || p->step) && !p->from)
        return wr_message_error("-l and -s need -c, the number of connections of the first step");
    if (p->last && p->last < p->from)
        return wr_message_error("-l %llu is less than -c %llu", (unsigned long long)p->last,
                                (unsigned long long)p->from);
    if (p->last > p->from && !p->step)
        return wr_message_error("-s is missing: how many connections each step adds");
    for (uint64_t n = p->from; n && n <= (p->last ? p->last : p->from); n += p->step ? p->step : 1)
        if (!add_step(o, n))
            return false;
    if (optind >= argc)
        return wr_message_error(
            "the client command is missing, as in: wr -c 100 -- wrk -d 5 http://127.0.0.1:8080/");
    o->command = argv + optind;
    return true;
}

static bool report_bad_option(char *const *argv, int letter)
{
    char shortly[3] = {'-', (char)optopt, '\0'};
    const char *word = optopt > ' ' ? shortly : argv[optind - 1];
    return letter == ':'
               ? wr_message_error("this option needs an argument: %s", word)
               : wr_message_error("unknown option: %s (put the client's own options after --)", word);
}

bool wr_options_parse(int argc, char **argv, struct wr_options *out)
{
    struct option_parser p = {.out = out};
    int letter;
    *out = (struct wr_options){.shots = 1,
                               .interval_us = 100000,
                               .limit_us = 600000000,
                               .requests = 500000,
                               .server = {.n_pids = 0}};
    opterr = 0;
    optind = 0; /* restarts the parser for unit tests */
    while ((letter = getopt_long(argc, argv, "+:p:c:l:s:n:r:kqvh", NAMES, NULL)) != -1) {
        if (letter == ':' || letter == '?')
            return report_bad_option(argv, letter);
        if (letter == JSON)
            parse_json_option(out, argc, argv);
        else if (!parse_option(&p, letter))
            return false;
    }
    return out->help || out->version || finish_options(&p, argc, argv);
}
