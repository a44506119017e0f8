/* SPDX-License-Identifier: Apache-2.0 */
#include "note.h"

#include <errno.h>
#include <unistd.h>

#include "connections.h"
#include "session.h"

enum { MESSAGE_MAX = 32 * 1024 };

/* ---- Facts ---- */

/* "size resident shared ...", in pages. */
static uint64_t read_memory(int fd)
{
    char room[256];
    uint64_t pages = 0;
    ssize_t n = fd >= 0 ? pread(fd, room, sizeof room, 0) : -1;
    long page = sysconf(_SC_PAGESIZE);
    mk_str text = mk_str_of(room, n > 0 ? (size_t)n : 0);
    (void)mk_str_word(&text);
    return page > 0 && mk_num_parse(mk_str_word(&text), &pages) ? pages * (uint64_t)page : 0;
}

void shell_facts_of(const struct shell *s, struct shell_facts *out)
{
    memset(out, 0, sizeof *out);
    out->process = getpid();
    out->memory = read_memory(s->statm_fd);
    out->level = mk_worker_log_level(s->worker);
    mk_worker_cache(s->worker, &out->cache);
}

/* ---- Sending ---- */

bool shell_note_send(struct shell *s, int to, const struct shell_note *note, mk_str text)
{
    struct mk_buf message = mk_buf_growing(MESSAGE_MAX);
    mk_buf_add(&message, mk_str_of((const char *)note, sizeof *note));
    mk_buf_add(&message, text);
    int e = message.failed ? -ENOMEM : mk_worker_send(s->worker, SHELL_PLUGIN, to, mk_buf_str(&message));
    mk_buf_free(&message);
    return e == 0 || e == -ENOTCONN; /* without a master there is nobody else */
}

/* ---- Receiving ---- */

static void answer(struct shell *s, const struct shell_note *question)
{
    struct shell_note note;
    struct mk_buf text = mk_buf_growing(MESSAGE_MAX);
    memcpy(&note, question, sizeof note);
    note.is_answer = true;
    note.from = mk_worker_index(s->worker);
    if (note.question == SHELL_ASK_CLEAR)
        mk_worker_cache_clear(s->worker);
    if (note.question == SHELL_ASK_CONNECTIONS)
        note.next = shell_connections_write(s->worker, question, &text);
    shell_facts_of(s, &note.facts);
    /* When it is lost it will be asked for again. */
    (void)shell_note_send(s, (int)question->from, &note, mk_buf_str(&text));
    mk_buf_free(&text);
}

void shell_note_arrives(struct mk_worker *worker, mk_str message, void *data)
{
    struct shell *s = mk_worker_data(worker, SHELL_PLUGIN);
    struct shell_note note;
    (void)data;
    if (!s || message.len < sizeof note)
        return;
    memcpy(&note, message.p, sizeof note);
    if (note.is_answer)
        shell_session_hear(s, &note, mk_str_skip(message, sizeof note));
    else if (!shell_is_superseded(worker)) /* else another one has our number */
        answer(s, &note);
}
