/* SPDX-License-Identifier: Apache-2.0 */
/* The output parsers of the load clients, one file each; see struct wr_client_type. */
#ifndef WR_CLIENTS_CLIENTS_H
#define WR_CLIENTS_CLIENTS_H

#include "base/str.h"
#include "wr/result.h"

bool wr_wrk_parse_output(mk_str output, struct wr_result *out, const char **why);
bool wr_h2load_parse_output(mk_str output, struct wr_result *out, const char **why);
bool wr_weighttp_parse_output(mk_str output, struct wr_result *out, const char **why);
bool wr_ab_parse_output(mk_str output, struct wr_result *out, const char **why);
bool wr_siege_parse_output(mk_str output, struct wr_result *out, const char **why);
bool wr_pace_parse_output(mk_str output, struct wr_result *out, const char **why);

#endif
