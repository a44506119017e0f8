/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

enum { PATIENCE_MS = 2000 };

static bool lives(int32_t pid)
{
    return pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH);
}

/* The number of a process, negative while it takes the slot: two cannot take the same. */
static bool is_taken(int32_t pid)
{
    return lives(pid < 0 ? -pid : pid);
}

struct isolate_slot *isolate_board_take(struct isolate_board *board, uint64_t version)
{
    int32_t self = (int32_t)getpid();
    for (unsigned i = 0; i < ISOLATE_SLOTS; i++) {
        struct isolate_slot *s = &board->slots[i];
        int32_t before = atomic_load(&s->pid);
        if (is_taken(before) || !atomic_compare_exchange_strong(&s->pid, &before, -self))
            continue;
        atomic_store(&s->is_up, 0);
        atomic_store(&s->version, version);
        atomic_store_explicit(&s->pid, self, memory_order_release);
        return s;
    }
    return NULL;
}

/* `version` 0: any. */
static bool has(struct isolate_board *board, uint64_t version, bool up)
{
    for (unsigned i = 0; i < ISOLATE_SLOTS; i++) {
        struct isolate_slot *s = &board->slots[i];
        bool fits = (!up || atomic_load_explicit(&s->is_up, memory_order_acquire)) &&
                    (!version || atomic_load(&s->version) == version);
        if (fits && lives(atomic_load(&s->pid)))
            return true;
    }
    return false;
}

bool isolate_board_serves(struct isolate_board *board)
{
    return has(board, 0, true);
}

bool isolate_board_has(struct isolate_board *board, uint64_t version, bool up)
{
    return has(board, version, up);
}

bool isolate_board_is_closed(struct isolate_board *board, uint64_t now_ms)
{
    if (isolate_board_serves(board)) {
        if (atomic_load_explicit(&board->down_ms, memory_order_relaxed))
            atomic_store(&board->down_ms, 0);
        return false;
    }
    uint64_t since = 0;
    if (atomic_compare_exchange_strong(&board->down_ms, &since, now_ms))
        return false;
    return now_ms > since + PATIENCE_MS;
}
