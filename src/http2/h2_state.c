/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_state.h"

const uint8_t mk_h2_state_remote_moves[MK_H2_REMOTES] = {
    [MK_H2_REMOTE_PREFACE] = 1u << MK_H2_REMOTE_SETTINGS | 1u << MK_H2_REMOTE_CLOSED,
    [MK_H2_REMOTE_SETTINGS] = 1u << MK_H2_REMOTE_OPEN | 1u << MK_H2_REMOTE_CLOSED,
    [MK_H2_REMOTE_OPEN] = 1u << MK_H2_REMOTE_GOAWAY | 1u << MK_H2_REMOTE_CLOSED,
    [MK_H2_REMOTE_GOAWAY] = 1u << MK_H2_REMOTE_CLOSED,
    [MK_H2_REMOTE_CLOSED] = 0,
};

const uint8_t mk_h2_state_local_moves[MK_H2_LOCALS] = {
    [MK_H2_LOCAL_OPEN] = 1u << MK_H2_LOCAL_WARNED | 1u << MK_H2_LOCAL_GOAWAY | 1u << MK_H2_LOCAL_FAILED |
                         1u << MK_H2_LOCAL_LOST,
    [MK_H2_LOCAL_WARNED] = 1u << MK_H2_LOCAL_GOAWAY | 1u << MK_H2_LOCAL_FAILED | 1u << MK_H2_LOCAL_LOST,
    [MK_H2_LOCAL_GOAWAY] = 1u << MK_H2_LOCAL_FAILED | 1u << MK_H2_LOCAL_LOST,
    [MK_H2_LOCAL_FAILED] = 1u << MK_H2_LOCAL_LOST,
    [MK_H2_LOCAL_LOST] = 0,
};
