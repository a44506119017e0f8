/* SPDX-License-Identifier: Apache-2.0 */
#include "conn_use.h"

static const struct mk_state_table states = {
    MK_STATE_ROW(POSTGRES_CONN_SHARED, "shared",
                 MK_STATE_TO(POSTGRES_CONN_RESERVED) | MK_STATE_TO(POSTGRES_CONN_RETIRED)),
    MK_STATE_ROW(POSTGRES_CONN_RESERVED, "reserved",
                 MK_STATE_TO(POSTGRES_CONN_SHARED) | MK_STATE_TO(POSTGRES_CONN_RESERVED_LAST)),
    MK_STATE_ROW(POSTGRES_CONN_RESERVED_LAST, "reserved last",
                 MK_STATE_TO(POSTGRES_CONN_RESERVED) | MK_STATE_TO(POSTGRES_CONN_RETIRED)),
    MK_STATE_ROW(POSTGRES_CONN_RETIRED, "retired", MK_STATE_TO(POSTGRES_CONN_SHARED)),
};

static bool is_conn_up(const struct postgres_conn *c)
{
    return package_conn_is_in_state(&c->base, PACKAGE_CONN_READY) ||
           package_conn_is_in_state(&c->base, PACKAGE_CONN_EXCLUSIVE);
}

static const char *check_invariant(const void *owner)
{
    const struct postgres_conn *c = owner;
    bool is_closing =
        c->use.current == POSTGRES_CONN_RESERVED_LAST || c->use.current == POSTGRES_CONN_RETIRED;
    return is_closing && !is_conn_up(c) ? "only a connection that is up is retired" : NULL;
}

static const struct mk_state_machine machine = {.name = "postgres connection use",
                                                .states = &states,
                                                .n_states = POSTGRES_CONN_RETIRED + 1,
                                                .invariant = check_invariant};

static void set_conn_use(struct postgres_conn *c, enum postgres_conn_use to)
{
    mk_state_move(&c->use, &machine, c, to);
}

bool postgres_conn_can_send(const struct postgres_conn *c)
{
    return package_conn_is_in_state(&c->base, PACKAGE_CONN_READY) && c->use.current == POSTGRES_CONN_SHARED &&
           !c->cancel;
}

bool postgres_conn_is_reserved(const struct postgres_conn *c)
{
    return c->use.current == POSTGRES_CONN_RESERVED || c->use.current == POSTGRES_CONN_RESERVED_LAST;
}

bool postgres_conn_is_retired(const struct postgres_conn *c)
{
    return c->use.current == POSTGRES_CONN_RETIRED;
}

void postgres_conn_reserve(struct postgres_conn *c)
{
    set_conn_use(c, POSTGRES_CONN_RESERVED);
}

void postgres_conn_release(struct postgres_conn *c)
{
    set_conn_use(c, c->use.current == POSTGRES_CONN_RESERVED_LAST ? POSTGRES_CONN_RETIRED
                                                                  : POSTGRES_CONN_SHARED);
}

void postgres_conn_retire(struct postgres_conn *c)
{
    if (!is_conn_up(c))
        return;
    if (c->use.current == POSTGRES_CONN_SHARED)
        set_conn_use(c, POSTGRES_CONN_RETIRED);
    else if (c->use.current == POSTGRES_CONN_RESERVED)
        set_conn_use(c, POSTGRES_CONN_RESERVED_LAST);
}

void postgres_conn_on_close(struct postgres_conn *c)
{
    if (c->use.current == POSTGRES_CONN_RETIRED)
        set_conn_use(c, POSTGRES_CONN_SHARED);
    else if (c->use.current == POSTGRES_CONN_RESERVED_LAST)
        set_conn_use(c, POSTGRES_CONN_RESERVED);
}
