/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/options.h"

#include <getopt.h>
#include <monkey/text.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
#include "http/header.h"
#include "load/url.h"
#include "pace/now.h"

enum { CONNECTIONS_MAX = 60000, FIELDS_MAX = 32 };
enum { POISSON = 1, CLOSED, SEED, TIMEOUT, STATUS, LENGTH, SHA1, VARIES, CLOSE, SPIN, JSON };

#define RATE_MIN 1e-6 /* one request in eleven days: longer than any run */
#define RATE_MAX 1e7

const char pace_options_help[] =
    "pace " MK_VERSION
    ", a load client with a fixed rate: it sends requests when they are due, not when the\n"
    "server is ready for them, and counts their latency from then on.\n"
    "\n"
    "  pace -R RATE [options] http://HOST[:PORT]/PATH\n"
    "\n"
    "  -R, --rate RATE        requests a second, such as 1000 or 0.5\n"
    "      --poisson          random gaps, as between independent visitors, instead of equal ones\n"
    "      --seed N           the seed of the random gaps (1)\n"
    "      --closed           no rate: each connection sends as soon as it has its response\n"
    "  -c, --connections N    the number of connections, all opened before the start (10)\n"
    "      --close            one request per connection\n"
    "  -d, --duration TIME    how long requests become due: 500ms, 10s, 2m (10s)\n"
    "      --timeout TIME     a response later than this is an error (5s)\n"
    "  -H, --header FIELD     an additional field, such as 'Accept: text/html'; may be repeated\n"
    "      --status N         the expected status of responses (200)\n"
    "      --length N         the expected bytes of content\n"
    "      --sha1 HEX         the expected SHA-1 of the content\n"
    "      --varies           responses may differ from each other in content and length\n"
    "      --spin             wait without sleeping: more exact, keeps one core busy\n"
    "      --json             print JSON\n"
    "  -v, --version          print the version and exit\n"
    "  -h, --help             print this and exit\n";

static const struct option NAMES[] = {
    {"rate", required_argument, NULL, 'R'},
    {"poisson", no_argument, NULL, POISSON},
    {"seed", required_argument, NULL, SEED},
    {"closed", no_argument, NULL, CLOSED},
    {"connections", required_argument, NULL, 'c'},
    {"close", no_argument, NULL, CLOSE},
    {"duration", required_argument, NULL, 'd'},
    {"timeout", required_argument, NULL, TIMEOUT},
    {"header", required_argument, NULL, 'H'},
    {"status", required_argument, NULL, STATUS},
    {"length", required_argument, NULL, LENGTH},
    {"sha1", required_argument, NULL, SHA1},
    {"varies", no_argument, NULL, VARIES},
    {"spin", no_argument, NULL, SPIN},
    {"json", no_argument, NULL, JSON},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* Headers are collected until the URL is known and the request can be built. */
struct option_parser {
    struct pace_options *o;
    char *fields[FIELDS_MAX + 1];
    size_t n_fields;
};

static bool report_error(const char *fmt, ...) MK_PRINTF(1, 2);

static bool report_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("pace: ", stderr);
    (void)vfprintf(stderr, fmt, args);
    fputs("\nTry `pace --help`.\n", stderr);
    va_end(args);
    return false;
}

static bool parse_rate(struct pace_options *o, const char *text)
{
    char *end;
    double rate = strtod(text, &end);
    if (end == text || *end || !(rate >= RATE_MIN && rate <= RATE_MAX))
        return report_error("-R expects requests a second, from 0.000001 to 10000000, not \"%s\"", text);
    o->rate = rate;
    return true;
}

static bool parse_duration(const char *name, const char *text, uint64_t *out)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
    char *end;
    double n = strtod(text, &end);
    for (size_t i = 0; end != text && i < MK_LEN(units); i++) {
        double seconds = n * units[i].seconds;
        if (strcmp(end, units[i].name) != 0 || !(seconds >= 1e-3 && seconds <= 24 * 3600))
            continue;
        *out = (uint64_t)(seconds * (double)PACE_SECOND);
        return true;
    }
    return report_error("%s expects a time from 1ms to 24h, such as 500ms, 10s or 2m, not \"%s\"", name,
                        text);
}

static bool parse_header(struct option_parser *r, char *text)
{
    mk_str field = mk_str_from_c(text);
    size_t colon = mk_str_find(field, ':');
    mk_str name = mk_str_first(field, colon == MK_STR_NONE ? 0 : colon);
    if (!mk_is_token(name) || !mk_is_header_value(mk_str_skip(field, name.len + 1)))
        return report_error("-H expects `Name: value`, not \"%s\"", text);
    enum mk_header_id id = mk_header_find_id(name);
    if (id == MK_HEADER_CONTENT_LENGTH || id == MK_HEADER_TRANSFER_ENCODING || id == MK_HEADER_TE ||
        id == MK_HEADER_UPGRADE || id == MK_HEADER_EXPECT)
        return report_error("pace sends no content and requests no upgrade, so it cannot send \"%s\"", text);
    if (r->n_fields == FIELDS_MAX)
        return report_error("-H may be repeated at most %d times", FIELDS_MAX);
    r->fields[r->n_fields++] = text;
    return true;
}

static bool parse_connections(struct pace_options *o, const char *text)
{
    uint64_t n;
    if (!load_option_parse_number(report_error, "-c", text, 1, CONNECTIONS_MAX, &n))
        return false;
    o->connections = (unsigned)n;
    return true;
}

static void set_flag(struct pace_options *o, int letter)
{
    o->closes |= letter == CLOSE;
    o->spins |= letter == SPIN;
    o->json |= letter == JSON;
    o->version |= letter == 'v';
    o->help |= letter == 'h';
    o->reference.varies |= letter == VARIES;
    if (letter == POISSON || letter == CLOSED)
        o->spacing = letter == POISSON ? PACE_POISSON : PACE_CLOSED_LOOP;
}

static bool parse_option(struct option_parser *r, int letter, char *arg)
{
    struct pace_options *o = r->o;
    switch (letter) {
    case 'R':
        return parse_rate(o, arg);
    case 'c':
        return parse_connections(o, arg);
    case 'd':
        return parse_duration("-d", arg, &o->duration);
    case TIMEOUT:
        return parse_duration("--timeout", arg, &o->timeout);
    case 'H':
        return parse_header(r, arg);
    case SEED:
        return load_option_parse_number(report_error, "--seed", arg, 0, UINT64_MAX, &o->seed);
    case STATUS:
        return load_option_parse_status(report_error, arg, &o->reference.expected);
    case LENGTH:
        return load_option_parse_length(report_error, arg, &o->reference.expected);
    case SHA1:
        return load_option_parse_sha1(report_error, arg, &o->reference.expected);
    default:
        set_flag(o, letter);
        return true;
    }
}

static bool build_request(struct option_parser *r)
{
    struct mk_buf *out = &r->o->request;
    *out = mk_buf_growing(PACE_REQUEST_MAX);
    load_url_write_request(out, &r->o->url, "pace/" MK_VERSION, r->fields, r->o->closes);
    return !out->failed || report_error("the request is longer than 64 KB");
}

static bool validate_options(struct option_parser *r, int argc, char **argv)
{
    struct pace_options *o = r->o;
    if (o->version || o->help)
        return true;
    if (argc == 0)
        return report_error("the URL is missing, such as http://127.0.0.1:8080/");
    if (argc > 1)
        return report_error("only one URL is allowed, not also \"%s\"", argv[1]);
    if (o->rate > 0 && o->spacing == PACE_CLOSED_LOOP)
        return report_error("a closed loop has no rate: use either -R or --closed");
    if (o->rate <= 0 && o->spacing != PACE_CLOSED_LOOP)
        return report_error("the rate is missing: use -R RATE");
    if (o->reference.varies && o->reference.expected.has_sha1)
        return report_error("varying content has no single SHA-1: use either --varies or --sha1");
    o->url_text = argv[0];
    const char *wrong = load_url_parse(mk_str_from_c(argv[0]), &o->url);
    if (!wrong && o->url.tls)
        wrong = "pace supports only HTTP/1.1 without TLS, so it must begin with http://";
    return wrong ? report_error("%s: %s", argv[0], wrong) : build_request(r);
}

/* The invalid letter may be inside a group such as -vx. */
static bool report_bad_option(char *const *argv, int letter)
{
    char shortly[3] = {'-', (char)optopt, '\0'};
    const char *word = optopt > ' ' ? shortly : argv[optind - 1];
    return letter == ':' ? report_error("this option needs an argument: %s", word)
                         : report_error("unknown option: %s", word);
}

bool pace_options_parse(int argc, char **argv, struct pace_options *out)
{
    struct option_parser r = {.o = out};
    int letter;
    *out = (struct pace_options){.seed = 1,
                                 .duration = 10 * PACE_SECOND,
                                 .timeout = 5 * PACE_SECOND,
                                 .connections = 10,
                                 .reference.expected.status = 200};
    optind = 0; /* restarts the parser in glibc and musl */
    opterr = 0;
    while ((letter = getopt_long(argc, argv, ":R:c:d:H:vh", NAMES, NULL)) != -1) {
        if (letter == ':' || letter == '?')
            return report_bad_option(argv, letter);
        if (!parse_option(&r, letter, optarg))
            return false;
    }
    return validate_options(&r, argc - optind, argv + optind);
}

void pace_options_fini(struct pace_options *o)
{
    mk_buf_free(&o->request);
    pace_response_check_fini(&o->reference);
}
