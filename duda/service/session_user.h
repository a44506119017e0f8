/* SPDX-License-Identifier: Apache-2.0 */
/* The records that the session store keeps in addition to the sessions. Three of them belong to each user:
 *
 * - The generation is a random number. It exists once a handler has revoked the user's sessions. A session
 *   copies the generation at login; a session whose generation differs from the stored one is revoked. Only a
 *   revocation writes this record, so no concurrent login can undo it. The record lives as long as the
 *   longest session that it revokes.
 * - The list names the sessions, to show them. Concurrent requests may lose an entry, so the list never
 *   decides whether a session is valid.
 * - An alias leads to the user from another name, such as the ID of a session at a login provider.
 *
 * The flash messages of a session are the fourth kind. The IDs of all these records begin with a letter
 * that no session ID contains, so a client cannot use such a record as its session. */
#ifndef DUDA_SERVICE_SESSION_USER_H
#define DUDA_SERVICE_SESSION_USER_H

#include "service/session_record.h"

/* Names of Duda's own values begin with this byte; duda_session_set() rejects it. */
#define DUDA_SESSION_OWN        "\1"
#define DUDA_SESSION_USER       DUDA_SESSION_OWN "user"
#define DUDA_SESSION_GENERATION DUDA_SESSION_OWN "generation"

/* The kinds of records: the first character of a record's ID. None is a hexadecimal digit. */
enum {
    DUDA_SESSION_RECORD_GENERATION = 'g',
    DUDA_SESSION_RECORD_ALIAS = 'k',
    DUDA_SESSION_RECORD_LIST = 'l',
    DUDA_SESSION_RECORD_FLASH = 'm'
};

/* Initializes an empty record, whose ID is derived from the kind and `text`. Returns 0 or -ENOMEM. */
int duda_session_record_init(struct duda_session *record, const struct duda_session *s, char kind,
                             mk_str text);
/* Returns one of Duda's own values in the session; absent if the session does not exist, or does not have
 * it. */
mk_str duda_session_own_value(const struct duda_session *s, const char *name);

/* ---- The generation ---- */

/* Returns 0 if the session belongs to no user, or was not revoked; -ENOENT: it was revoked, and has been
 * deleted; or the error of the store. */
int duda_session_user_check(struct duda_session *s);
/* Loads the current generation of the user. Absent: the user's sessions were never revoked, or all revoked
 * sessions have expired. */
int duda_session_user_generation(const struct duda_session *s, mk_str user, mk_str *out);
/* Revokes all current sessions of the user, and sets *generation to the new generation. */
int duda_session_user_revoke(const struct duda_session *s, mk_str user, mk_str *generation);

/* ---- Aliases ---- */

/* Stores the alias for the lifetime of the longest session. */
int duda_session_user_put_alias(const struct duda_session *s, mk_str user, mk_str alias);
/* Loads the user with this alias. -ENOENT: there is none. */
int duda_session_user_find_alias(const struct duda_session *s, mk_str alias, mk_str *user);

/* ---- The list ---- */

enum {
    DUDA_SESSION_KEY_SIZE = DUDA_SESSION_ID_LEN / 2,
    DUDA_SESSION_ENTRY_HEAD = DUDA_SESSION_KEY_SIZE + 17
};
/* The head of an entry's value: the key in the store, the times of creation and last use, and the length of
 * the client's address. The address and the User-Agent follow. The name of the entry is the public ID. */
struct duda_session_entry {
    char key[DUDA_SESSION_KEY_SIZE];
    uint64_t began, used;
    unsigned char ip_len;
};
bool duda_session_user_decode(mk_str value, struct duda_session_entry *out);
int duda_session_user_open_list(struct duda_session *list, const struct duda_session *s, mk_str user);
/* Stores the list, or deletes an empty one. */
int duda_session_user_save_list(struct duda_session *list);
/* Adds the session to the list, and drops the least recently used ones if the list is full. */
int duda_session_user_put_entry(struct duda_session *list, const struct duda_session *s);
/* Updates the list of the user after the session has got a new ID, or was extended. `old_key` is the previous
 * key of the session in the store. Failures are not reported, because the list does not decide whether a
 * session is valid. */
void duda_session_user_update(struct duda_session *s, const char old_key[DUDA_SESSION_ID_LEN]);
/* Removes a destroyed session from the list of its user. */
void duda_session_user_remove(struct duda_session *s);
void duda_session_user_remove_id(const struct duda_session *s, mk_str user, mk_str id);

/* ---- Flash messages ---- */

int duda_session_flash_init(struct duda_session *record, const struct duda_session *s,
                            const char id[DUDA_SESSION_ID_LEN]);
int duda_session_flash_save(struct duda_session *record, const struct duda_session *s);
/* Moves the messages of the session to its new ID. */
void duda_session_flash_move(struct duda_session *s, const char old_id[DUDA_SESSION_ID_LEN]);

#endif
