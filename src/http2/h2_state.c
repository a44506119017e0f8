/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_state.h"

#define REMOTE(state) MK_STATE_TO(MK_H2_REMOTE_##state)
#define LOCAL(state)  MK_STATE_TO(MK_H2_LOCAL_##state)

static const struct mk_state_table remote_states = {
    MK_STATE_ROW(MK_H2_REMOTE_PREFACE, "preface", REMOTE(SETTINGS) | REMOTE(CLOSED)),
    MK_STATE_ROW(MK_H2_REMOTE_SETTINGS, "settings", REMOTE(OPEN) | REMOTE(CLOSED)),
    MK_STATE_ROW(MK_H2_REMOTE_OPEN, "open", REMOTE(GOAWAY) | REMOTE(CLOSED)),
    MK_STATE_ROW(MK_H2_REMOTE_GOAWAY, "goaway", REMOTE(CLOSED)),
    MK_STATE_ROW(MK_H2_REMOTE_CLOSED, "closed", 0),
};

static const struct mk_state_table local_states = {
    MK_STATE_ROW(MK_H2_LOCAL_OPEN, "open", LOCAL(WARNED) | LOCAL(GOAWAY) | LOCAL(FAILED) | LOCAL(LOST)),
    MK_STATE_ROW(MK_H2_LOCAL_WARNED, "warned", LOCAL(GOAWAY) | LOCAL(FAILED) | LOCAL(LOST)),
    MK_STATE_ROW(MK_H2_LOCAL_GOAWAY, "goaway", LOCAL(FAILED) | LOCAL(LOST)),
    MK_STATE_ROW(MK_H2_LOCAL_FAILED, "failed", LOCAL(LOST)),
    MK_STATE_ROW(MK_H2_LOCAL_LOST, "lost", 0),
};

/* Two invariants: until the server has sent its final GOAWAY, each stream is served; until the client has
 * sent its preface and SETTINGS, no stream exists. */
static const char *remote_invariant_error(const void *owner)
{
    const struct mk_h2 *h2 = owner;
    bool is_early = h2->remote.current == MK_H2_REMOTE_PREFACE || h2->remote.current == MK_H2_REMOTE_SETTINGS;
    return is_early && h2->n_streams ? "the client has opened no stream" : NULL;
}

static const char *local_invariant_error(const void *owner)
{
    const struct mk_h2 *h2 = owner;
    bool serves_all = h2->local.current == MK_H2_LOCAL_OPEN || h2->local.current == MK_H2_LOCAL_WARNED;
    return serves_all && h2->final_stream != MK_H2_STREAM_MAX ? "each stream is served" : NULL;
}

const struct mk_state_machine mk_h2_state_remote_machine = {"client's side of HTTP/2", &remote_states,
                                                            MK_H2_REMOTES, remote_invariant_error};
const struct mk_state_machine mk_h2_state_local_machine = {"our side of HTTP/2", &local_states, MK_H2_LOCALS,
                                                           local_invariant_error};
