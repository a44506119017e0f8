/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/client_type.h"

#include "wr/clients/clients.h"

#define MB 1048576.0

static const struct wr_client_type CLIENT_TYPES[] = {
    {"wrk", "-c", {"--latency"}, {"--latency"}, 0.01 * MB, wr_wrk_parse_output},
    {"wrk2", "-c", {"--latency"}, {"--latency", "-L"}, 0.01 * MB, wr_wrk_parse_output},
    {"h2load", "-c", {NULL}, {NULL}, 0, wr_h2load_parse_output},
    {"weighttp", "-c", {NULL}, {NULL}, 0, wr_weighttp_parse_output},
    /* The times in ab's table are whole milliseconds; those in the CSV file of -e have three more digits.
     * /dev/stdout works because wr reads ab's output from a pipe. */
    {"ab", "-c", {"-e", "/dev/stdout"}, {"-e"}, 0, wr_ab_parse_output},
    /* If -q is given, as is usual, siege prints a result only with -j. */
    {"siege", "-c", {"-j"}, {"-j", "--json-output"}, 0.01 * MB, wr_siege_parse_output},
    {"pace", "-c", {"--json"}, {"--json"}, 0, wr_pace_parse_output},
    {NULL, NULL, {NULL}, {NULL}, 0, NULL},
};

const struct wr_client_type *wr_client_type_find(mk_str program)
{
    mk_str name = program;
    for (size_t i = 0; i < program.len; i++)
        if (program.p[i] == '/')
            name = mk_str_skip(program, i + 1);
    for (const struct wr_client_type *k = CLIENT_TYPES; k->name; k++)
        if (mk_str_eq(name, mk_str_from_c(k->name)))
            return k;
    return NULL;
}

const struct wr_client_type *wr_client_type_all(void)
{
    return CLIENT_TYPES;
}
