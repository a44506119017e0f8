/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the phases: a probe request that records the reference response, opening the connections, the
 * measurement, and the report. */
#include <stdio.h>

#include "os/fd.h"
#include "pace/load_generator.h"
#include "pace/options.h"
#include "pace/report.h"

enum { FINE = 0, FAILED = 1, USAGE = 2, SPARE_FDS = 16 };

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

/* The first signal stops sending, the second one terminates the program. */
static void install_signal_handlers(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static int report_error(const struct pace_options *o, const char *what, const char *why)
{
    fprintf(stderr, "pace: %s: %s%s\n", o->url_text, what, why);
    return FAILED;
}

static bool raise_fd_limit(const struct pace_options *o)
{
    uint64_t wanted = (uint64_t)o->connections + SPARE_FDS, limit = 0;
    if (mk_fd_set_limit(0, &limit) == 0 && limit >= wanted)
        return true;
    if (mk_fd_set_limit(wanted, &limit) == 0 && limit >= wanted)
        return true;
    fprintf(stderr,
            "pace: %u connections need %llu open files, but only %llu are allowed: raise `ulimit -n`\n",
            o->connections, (unsigned long long)wanted, (unsigned long long)limit);
    return false;
}

/* Prints the reason and returns false if the first response is wrong. Some addresses of a host may have no
 * listener: uses the first one that accepts a connection. */
static bool send_first_request(struct pace_load_generator *load, const struct pace_options *o,
                               struct pace_tally *t)
{
    struct mk_sockaddr addresses[LOAD_URL_ADDRESSES_MAX];
    const char *why;
    size_t n = load_url_resolve(&o->url, addresses, &why);
    if (n == 0) {
        (void)report_error(o, "the host was not found: ", why);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        load->address = addresses[i];
        pace_load_generator_send_one(load, t);
        if (!t->errors[PACE_CONNECT])
            break;
    }
    for (size_t i = 0; i < PACE_CLASSES; i++)
        if (t->errors[i])
            fprintf(stderr, "pace: %s: the first request failed (%s): %s%s\n", o->url_text,
                    pace_error_class_names[i], t->first[i],
                    i == PACE_STATUS ? "; if you expect it, use --status" : "");
    return t->right == 1;
}

static int print_report(const struct pace_options *o, const struct pace_tally *opening,
                        const struct pace_tally *t)
{
    struct mk_buf text = mk_buf_growing(PACE_REPORT_MAX);
    if (o->json)
        pace_report_write_json(&text, o, opening, t);
    else
        pace_report_write_text(&text, o, opening, t);
    bool ok = !text.failed && fwrite(text.p, 1, text.len, stdout) == text.len && fflush(stdout) == 0;
    mk_buf_free(&text);
    return ok ? FINE : report_error(o, "the report could not be written", "");
}

static int run_load_and_report(struct pace_load_generator *load, const struct pace_options *o)
{
    static struct pace_tally opening, tally;
    struct pace_schedule schedule;
    if (!send_first_request(load, o, &tally))
        return FAILED;
    pace_tally_init(&opening);
    if (!o->closes)
        pace_load_generator_connect_all(load, &opening);
    pace_schedule_init(&schedule, o->spacing, o->rate, o->seed);
    pace_load_generator_run(load, &schedule, o->duration, &tally);
    return print_report(o, &opening, &tally);
}

static int run_measurement(struct pace_options *o)
{
    struct pace_load_generator load = {.request = mk_buf_str(&o->request),
                                       .reference = &o->reference,
                                       .n = o->connections,
                                       .timeout = o->timeout,
                                       .closes = o->closes,
                                       .spins = o->spins,
                                       .stop = &stop};
    if (!raise_fd_limit(o))
        return FAILED;
    install_signal_handlers();
    mk_err e = pace_load_generator_init(&load);
    int code = e ? report_error(o, "cannot start: ", mk_err_text(e)) : run_load_and_report(&load, o);
    pace_load_generator_fini(&load);
    return code;
}

int main(int argc, char **argv)
{
    struct pace_options o;
    int code = USAGE;
    if (pace_options_parse(argc, argv, &o)) {
        code = FINE;
        if (o.help)
            fputs(pace_options_help, stdout);
        else if (o.version)
            puts("pace " MK_VERSION);
        else
            code = run_measurement(&o);
    }
    pace_options_fini(&o);
    return code;
}
