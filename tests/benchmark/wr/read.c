/* SPDX-License-Identifier: Apache-2.0 */
/* wr_read CLIENT < OUTPUT: prints what wr parses from a client's output, one name and number per line, for
 * test_clients.py, which compares it with the server's access log. `wr_read CLIENT adds` prints the options
 * that wr adds to the command. */
#include <stdio.h>

#include "wr/client_type.h"

enum { OUTPUT_MAX = 1 << 20 };

static void print_counts(const struct wr_result *r)
{
    printf("requests %lld\nbytes %lld\n", (long long)r->requests, (long long)r->bytes);
    printf("connect %lld\nread %lld\nwrite %lld\n", (long long)r->errors.connect, (long long)r->errors.read,
           (long long)r->errors.write);
    printf("timeout %lld\nstatus %lld\nother %lld\n", (long long)r->errors.timeout,
           (long long)r->errors.status, (long long)r->errors.other);
    printf("errors %lld\n", (long long)wr_result_errors(r));
}

static void print_quantities(const struct wr_result *r)
{
    const struct wr_latency *l = &r->latency_us;
    printf("seconds %.9g\nrate %.9g\n", r->seconds, r->rate);
    printf("mean %.9g\np50 %.9g\np75 %.9g\np90 %.9g\np95 %.9g\np99 %.9g\np999 %.9g\nmax %.9g\n", l->mean,
           l->p50, l->p75, l->p90, l->p95, l->p99, l->p999, l->max);
}

int main(int argc, char **argv)
{
    static char output[OUTPUT_MAX];
    const struct wr_client_type *k = argc > 1 ? wr_client_type_find(mk_str_from_c(argv[1])) : NULL;
    struct wr_result r;
    const char *why = NULL;
    if (!k || argc > 3) {
        fputs("usage: wr_read CLIENT < OUTPUT, or wr_read CLIENT adds\n", stderr);
        return 2;
    }
    if (argc == 3) {
        for (size_t i = 0; k->adds[i]; i++)
            puts(k->adds[i]);
        return 0;
    }
    if (!k->read(mk_str_of(output, fread(output, 1, sizeof output, stdin)), &r, &why)) {
        fprintf(stderr, "wr_read: cannot read the output of %s: %s\n", k->name, why);
        return 1;
    }
    print_counts(&r);
    print_quantities(&r);
    return 0;
}
