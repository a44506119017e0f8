/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_state.h"

#define REMOTE(state) MK_SM_TO(MK_H2_REMOTE_##state)
#define LOCAL(state)  MK_SM_TO(MK_H2_LOCAL_##state)

static const struct mk_sm_state remote_states[MK_H2_REMOTES] = {
    [MK_H2_REMOTE_PREFACE] = {REMOTE(SETTINGS) | REMOTE(CLOSED), "preface"},
    [MK_H2_REMOTE_SETTINGS] = {REMOTE(OPEN) | REMOTE(CLOSED), "settings"},
    [MK_H2_REMOTE_OPEN] = {REMOTE(GOAWAY) | REMOTE(CLOSED), "open"},
    [MK_H2_REMOTE_GOAWAY] = {REMOTE(CLOSED), "goaway"},
    [MK_H2_REMOTE_CLOSED] = {0, "closed"},
};

static const struct mk_sm_state local_states[MK_H2_LOCALS] = {
    [MK_H2_LOCAL_OPEN] = {LOCAL(WARNED) | LOCAL(GOAWAY) | LOCAL(FAILED) | LOCAL(LOST), "open"},
    [MK_H2_LOCAL_WARNED] = {LOCAL(GOAWAY) | LOCAL(FAILED) | LOCAL(LOST), "warned"},
    [MK_H2_LOCAL_GOAWAY] = {LOCAL(FAILED) | LOCAL(LOST), "goaway"},
    [MK_H2_LOCAL_FAILED] = {LOCAL(LOST), "failed"},
    [MK_H2_LOCAL_LOST] = {0, "lost"},
};

/* Without our GOAWAY, each stream is served; without a client that has spoken HTTP/2, there is none. */
static const char *remote_broken(const void *owner)
{
    const struct mk_h2 *h2 = owner;
    bool is_early = h2->remote.is == MK_H2_REMOTE_PREFACE || h2->remote.is == MK_H2_REMOTE_SETTINGS;
    return is_early && h2->n_streams ? "the client has opened no stream" : NULL;
}

static const char *local_broken(const void *owner)
{
    const struct mk_h2 *h2 = owner;
    bool serves_all = h2->local.is == MK_H2_LOCAL_OPEN || h2->local.is == MK_H2_LOCAL_WARNED;
    return serves_all && h2->final_stream != MK_H2_STREAM_MAX ? "each stream is served" : NULL;
}

const struct mk_sm_machine mk_h2_state_remote_machine = {"client's side of HTTP/2", remote_states,
                                                         MK_H2_REMOTES, remote_broken};
const struct mk_sm_machine mk_h2_state_local_machine = {"our side of HTTP/2", local_states, MK_H2_LOCALS,
                                                        local_broken};
