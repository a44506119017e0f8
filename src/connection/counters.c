/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/counters.h"

const char *const mk_counters_h2_reason_names[MK_H2_REASONS] = {
    [MK_H2_BAD_PROTOCOL] = "protocol",
    [MK_H2_BAD_FRAME_SIZE] = "frame_size",
    [MK_H2_BAD_COMPRESSION] = "compression",
    [MK_H2_BAD_FLOW] = "flow_control",
    [MK_H2_STREAM_ENDED] = "stream_ended",
    [MK_H2_MANY_RESETS] = "resets",
    [MK_H2_MANY_PINGS] = "pings",
    [MK_H2_MANY_SETTINGS] = "settings",
    [MK_H2_MANY_EMPTY] = "empty_frames",
    [MK_H2_MANY_STREAMS] = "streams",
    [MK_H2_MANY_OTHERS] = "other_frames",
    [MK_H2_TINY_WINDOWS] = "tiny_windows",
    [MK_H2_LONG_HEAD] = "long_head",
    [MK_H2_SLOW] = "slow",
    [MK_H2_NO_MEMORY] = "no_memory",
};
