/* SPDX-License-Identifier: Apache-2.0 */
/* cycles N: creates, starts in a thread, stops and frees a server N times. Prints the wall-clock and CPU
 * seconds, and by how many KB the program grew after the first 100 cycles. cycles idle: prints the KB that an
 * idle server adds: anonymous memory, and all resident pages including mapped files (shared or not), except
 * those of libc. */
#include <monkey/server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct memory_usage {
    long anonymous, all;
};

static enum mk_verdict send_hello(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    mk_response_set_body_nocopy(response, MK_STR("hello\n"));
    return MK_DONE;
}

static struct mk_server *start_server(void)
{
    struct mk_server *s = mk_server_new(NULL);
    if (mk_server_add_route(s, "GET /", send_hello, NULL) || mk_server_listen(s, "127.0.0.1:0", NULL) ||
        mk_server_start(s, 1)) {
        fprintf(stderr, "cycles: %s\n", mk_server_error(s));
        exit(1);
    }
    return s;
}

static void start_and_stop_servers(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct mk_server *s = start_server();
        mk_server_stop(s, 0);
        mk_server_wait(s);
        mk_server_free(s);
    }
}

static bool is_libc_file(const char *file)
{
    return strstr(file, "/libc.so") || strstr(file, "/ld-linux");
}

static struct memory_usage memory_usage(void)
{
    char line[512], file[256] = "";
    long kb;
    struct memory_usage m = {0};
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "Anonymous: %ld", &kb) == 1)
            m.anonymous += kb;
        else if (sscanf(line, "Rss: %ld", &kb) == 1)
            m.all += is_libc_file(file) ? 0 : kb;
        else if (sscanf(line, "%*x-%*x %*s %*s %*s %*s %255s", file) < 1 && strchr(line, '-'))
            file[0] = '\0';
    }
    if (f)
        (void)fclose(f);
    return m;
}

static double clock_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int measure_idle_memory(void)
{
    (void)memory_usage(); /* allocates the buffers for reading smaps */
    struct memory_usage before = memory_usage();
    struct mk_server *s = start_server();
    struct memory_usage with = memory_usage();
    printf("%ld %ld\n", with.anonymous - before.anonymous, with.all - before.all);
    mk_server_free(s);
    return 0;
}

static int measure_cycles(unsigned n)
{
    start_and_stop_servers(100);
    long before = memory_usage().anonymous;
    double wall = clock_seconds(CLOCK_MONOTONIC), cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    start_and_stop_servers(n);
    wall = clock_seconds(CLOCK_MONOTONIC) - wall;
    cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("%.2f %.2f %ld\n", wall, cpu, memory_usage().anonymous - before);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "10000";
    return strcmp(what, "idle") == 0 ? measure_idle_memory()
                                     : measure_cycles((unsigned)strtoul(what, NULL, 10));
}
