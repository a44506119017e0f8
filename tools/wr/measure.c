/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/measure.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "wr/message.h"
#include "wr/meter.h"
#include "wr/syscalls.h"

static bool report_out_of_memory(void)
{
    return wr_message_error("out of memory");
}

static bool start_client(const struct wr_measure *f, struct wr_child *client)
{
    mk_err e = wr_child_start(client, f->words);
    if (e == -ENOENT)
        return wr_message_error("the client \"%s\" is not installed, or not in PATH", f->words[0]);
    if (e)
        return wr_message_error("the client \"%s\" does not start: %s", f->words[0], mk_err_text(e));
    return true;
}

static const struct wr_process *find_dead_server(const struct wr_measure *f)
{
    struct wr_cpu cpu;
    wr_process_tree_read_process_cpu(f->server, &cpu);
    return wr_process_tree_find_dead_root(f->server);
}

/* If the client failed, checks the server several times: a dying server closes its connections shortly before
 * the kernel reports its exit. */
static bool is_server_alive(const struct wr_measure *f, const struct wr_child *client)
{
    enum { RETRIES = 20 };
    static const struct timespec moment = {.tv_nsec = 10000000};
    bool failed = client->has_ended && client->status != 0;
    const struct wr_process *dead = find_dead_server(f);
    for (int i = 0; !dead && failed && i < RETRIES; i++) {
        (void)nanosleep(&moment, NULL);
        dead = find_dead_server(f);
    }
    return !dead || wr_message_error("the server's process %d (%s) ended during the shot: see its log",
                                     (int)dead->pid, dead->name);
}

/* Returns the tail of the output, standard error first, for error messages. */
static mk_str output_tail(const struct wr_child *c)
{
    enum { LINE_MAX_SHOWN = 400 };
    for (int i = 1; i >= 0; i--) {
        mk_str s = mk_buf_str(&c->outputs[i]);
        while (s.len && (s.p[s.len - 1] == '\n' || s.p[s.len - 1] == ' '))
            s.len--;
        if (s.len)
            return mk_str_skip(s, s.len > LINE_MAX_SHOWN ? s.len - LINE_MAX_SHOWN : 0);
    }
    return MK_STR("(nothing)");
}

static bool check_exit_status(const struct wr_measure *f, const struct wr_child *c)
{
    mk_str output = output_tail(c);
    if (WIFEXITED(c->status) && WEXITSTATUS(c->status) == 0)
        return true;
    if (WIFSIGNALED(c->status))
        return wr_message_error("the client \"%s\" was ended by signal %d (%s); its output: %.*s",
                                f->words[0], WTERMSIG(c->status), strsignal(WTERMSIG(c->status)),
                                MK_STR_ARG(output));
    return wr_message_error("the client \"%s\" failed with exit code %d; its output: %.*s", f->words[0],
                            WEXITSTATUS(c->status), MK_STR_ARG(output));
}

/* Parses the client's standard output or, if it has no result, its standard error. */
static bool parse_output(const struct wr_measure *f, const struct wr_child *c, struct wr_result *out)
{
    const char *why = NULL, *other;
    if (f->kind->read(mk_buf_str(&c->outputs[0]), out, &why) ||
        f->kind->read(mk_buf_str(&c->outputs[1]), out, &other))
        return true;
    return wr_message_error("cannot read the output of %s: %s%s; it ends with: %.*s", f->kind->name, why,
                            c->was_cut ? " (it exceeds a megabyte; its beginning is lost)" : "",
                            MK_STR_ARG(output_tail(c)));
}

uint64_t wr_measure_first_sample_delay_us(uint64_t interval_us)
{
    enum { SOON = 10 };
    return interval_us / SOON;
}

/* Samples the server until the client exits. */
static bool sample_until_exit(const struct wr_measure *f, struct wr_child *client, struct wr_meter *m)
{
    uint64_t next = client->started_us + wr_measure_first_sample_delay_us(f->interval_us),
             until = client->started_us + f->limit_us;
    for (;;) {
        enum wr_child_event event = wr_child_wait(client, next < until ? next : until);
        if (event == WR_CHILD_ENDED)
            return true;
        if (event == WR_CHILD_INTERRUPTED)
            return wr_message_error("interrupted; the client was stopped");
        uint64_t now = mk_clock_us();
        if (now >= until)
            return wr_message_error(
                "the client \"%s\" did not end within %llu seconds and was stopped; --limit allows more",
                f->words[0], (unsigned long long)(f->limit_us / 1000000));
        /* Skips missed samples instead of catching up. */
        while (next <= now)
            next += f->interval_us;
        if (!m)
            continue;
        if (!wr_meter_sample(m))
            return report_out_of_memory();
        wr_message_progress("%s: %.1f s, %.2f cores, %.1f MB", f->title,
                            (double)(now - client->started_us) / 1e6, m->cores,
                            m->pss_kb > 0 ? m->pss_kb / 1024 : 0);
    }
}

static bool run_and_measure(const struct wr_measure *f, struct wr_child *client, struct wr_meter *m,
                            struct wr_measurement *out)
{
    if (!wr_meter_start(m, f->server))
        return report_out_of_memory();
    if (!start_client(f, client))
        return false;
    wr_meter_watch_client(m, client->pid);
    if (!sample_until_exit(f, client, m))
        return false;
    if (!wr_meter_stop(m, client, out))
        return report_out_of_memory();
    wr_child_drain(client);
    if (!is_server_alive(f, client) || !check_exit_status(f, client) ||
        !parse_output(f, client, &out->reported))
        return false;
    wr_measurement_find_bottleneck(out);
    return true;
}

bool wr_measure_run(const struct wr_measure *f, struct wr_measurement *out)
{
    struct wr_child client = {.fds = {-1, -1}};
    struct wr_meter meter;
    wr_measurement_init(out);
    bool good = run_and_measure(f, &client, &meter, out);
    wr_child_fini(&client);
    wr_meter_fini(&meter);
    wr_message_progress_end();
    return good;
}

static bool run_counting_syscalls(const struct wr_measure *f, struct wr_child *client, double *per_request,
                                  const char **why)
{
    struct wr_syscalls calls = {NULL, 0};
    struct wr_result reported;
    *why = wr_process_tree_add_descendants(f->server) && wr_process_tree_read_threads(f->server)
               ? wr_syscalls_start(&calls, f->server)
               : "out of memory";
    if (*why) {
        (void)wr_syscalls_stop(&calls);
        return true;
    }
    bool good = start_client(f, client) && sample_until_exit(f, client, NULL);
    uint64_t n = wr_syscalls_stop(&calls);
    if (!good)
        return false;
    wr_child_drain(client);
    if (!is_server_alive(f, client) || !check_exit_status(f, client) || !parse_output(f, client, &reported))
        return false;
    if (wr_result_requests_served(&reported) > 0)
        *per_request = (double)n / (double)wr_result_requests_served(&reported);
    else
        *why = "the client got no response";
    return true;
}

bool wr_measure_syscalls(const struct wr_measure *f, double *per_request, const char **why)
{
    struct wr_child client = {.fds = {-1, -1}};
    *per_request = WR_UNKNOWN;
    bool good = run_counting_syscalls(f, &client, per_request, why);
    wr_child_fini(&client);
    return good;
}

bool wr_measure_warm_up(const struct wr_measure *f, uint64_t us)
{
    struct wr_child client = {.fds = {-1, -1}};
    bool good = start_client(f, &client);
    if (good && wr_child_wait(&client, mk_clock_us() + us) == WR_CHILD_INTERRUPTED)
        good = wr_message_error("interrupted; the client was stopped");
    if (good && client.has_ended) {
        good = check_exit_status(f, &client);
        if (good)
            wr_message("the warm-up ended after %.1f of %.1f seconds, when the client did",
                       (double)(client.ended_us - client.started_us) / 1e6, (double)us / 1e6);
    }
    good = good && is_server_alive(f, &client);
    wr_child_fini(&client);
    return good;
}
