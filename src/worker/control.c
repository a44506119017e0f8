/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/control.h"

#include "os/fd.h"
#include "os/fd_passing.h"

/* Header of a message, followed by its text. */
struct message_head {
    uint32_t kind;
    int32_t number;
    uint64_t id;
};

mk_err mk_control_open(int *master_end, int *worker_end)
{
    return mk_fd_passing_pair(master_end, worker_end);
}

mk_err mk_control_send(int end, const struct mk_control_message *m)
{
    if (m->text.len > MK_CONTROL_TEXT)
        return -EMSGSIZE;
    struct message_head message_head = {.kind = (uint32_t)m->kind, .number = m->number, .id = m->id};
    const struct iovec parts[] = {
        {.iov_base = &message_head, .iov_len = sizeof message_head},
        {.iov_base = (void *)(uintptr_t)m->text.p, .iov_len = m->text.len},
    };
    return mk_fd_passing_send(end, parts, MK_LEN(parts), &m->fd, m->fd >= 0);
}

mk_err mk_control_send_kind(int end, enum mk_control_kind kind)
{
    return mk_control_send(end, &(struct mk_control_message){.kind = kind, .fd = -1});
}

static bool parse_message(mk_str bytes, struct mk_control_message *m)
{
    struct message_head message_head;
    if (bytes.len < sizeof message_head)
        return false;
    memcpy(&message_head, bytes.p, sizeof message_head);
    m->kind = (enum mk_control_kind)message_head.kind;
    m->number = message_head.number;
    m->id = message_head.id;
    m->text = mk_str_skip(bytes, sizeof message_head);
    return message_head.kind < MK_CONTROL_KINDS;
}

mk_err mk_control_receive(int end, struct mk_control_buffer *buf, struct mk_control_message *m)
{
    int fds[MK_FD_PASSING_MAX];
    ssize_t n = mk_fd_passing_receive(end, buf->bytes, sizeof buf->bytes, fds);
    if (n < 0)
        return n == -EMSGSIZE ? -EBADMSG : (mk_err)n;
    m->fd = fds[0];
    mk_fd_close(&fds[1]);
    mk_fd_close(&fds[2]);
    if (parse_message(mk_str_of(buf->bytes, (size_t)n), m))
        return 0;
    mk_fd_close(&m->fd);
    return -EBADMSG;
}
