/* SPDX-License-Identifier: Apache-2.0 */
#include "retry.h"

#include <inttypes.h>
#include <monkey/json.h>
#include <monkey/text.h>

#include "jws.h"
#include "store.h"

enum {
    PAUSE_MAX_S = 86400 * 3 / 4 /* three quarters of a day; with the random part, at most a day */,
    ON_DEMAND_MAX_S = 3600 * 3 / 4 /* clients wait, and the owner of the name may just have set up its DNS */,
    LONGEST_S = 20 * 86400,
    LIMITED_S = 3600,
    TEXT_MAX = 256 * 1024,
    MARK = 48
};

/* Returns the name of the file with the delay. The name of the account's file cannot be that of a host. */
static const char *retry_note_name(const struct acme_cert_spec *spec)
{
    return spec ? spec->name : "_account";
}

/* Identifies the attempt by a digest: the delay does not apply to a different attempt. */
static void digest_attempt(const struct acme_job *p, const struct acme_cert_spec *spec, char out[MARK])
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX), code = mk_buf_fixed(out, MARK - 1);
    char digest[32];
    mk_buf_addf(&text, "%s %s", p->directory, p->eab_id ? p->eab_id : "");
    for (size_t i = 0; spec && i < spec->n_names; i++)
        mk_buf_addf(&text, " %s", spec->names[i]);
    if (spec)
        mk_buf_addf(&text, " %s", spec->challenge);
    if (!text.failed && acme_sha256(mk_buf_str(&text), digest))
        acme_base64url_encode(&code, mk_str_of(digest, sizeof digest));
    out[code.len] = '\0';
    mk_buf_free(&text);
}

static json_t *read_retry_note(const struct acme_job *p, const struct acme_cert_spec *spec)
{
    struct mk_buf text;
    char ours[MARK];
    int e = acme_store_read(ACME_FAILURES, retry_note_name(spec), ".json", &text);
    json_t *o = e ? NULL : json_loadb(text.p ? text.p : "", text.len, 0, NULL);
    const char *its = acme_json_string(o, "what");
    mk_buf_free(&text);
    digest_attempt(p, spec, ours);
    if (its && strcmp(its, ours) == 0)
        return o;
    json_decref(o);
    return NULL;
}

int64_t acme_retry_time(const struct acme_job *p, const struct acme_cert_spec *spec, int64_t now)
{
    json_t *o = read_retry_note(p, spec);
    int64_t until = json_integer_value(json_object_get(o, "until"));
    json_decref(o);
    /* No delay is that long: the clock was wrong when the file was written. */
    return until > now + LONGEST_S ? 0 : until;
}

void acme_retry_log_wait(const struct acme_job *p, const struct acme_cert_spec *spec, int64_t seconds)
{
    if (!p->on_demand.is_set)
        acme_report_delay("%s%sthe last attempt failed, and another one follows in %" PRId64
                          " s; to try now, remove " ACME_FAILURES "/%s.json in the StateFolder, and reload",
                          spec ? spec->name : "", spec ? ": " : "", seconds, retry_note_name(spec));
}

/* Adds a random part, so that servers that failed at the same time do not retry at the same time. */
static uint64_t add_jitter(uint64_t seconds)
{
    uint32_t r;
    mk_random(&r, sizeof r);
    return seconds + seconds * (r % 256) / 1024;
}

static uint64_t pause_after_failures(const struct acme_job *p, uint64_t failures,
                                     const struct acme_error *why)
{
    uint64_t s = p->retry_s, max = p->on_demand.is_set ? ON_DEMAND_MAX_S : PAUSE_MAX_S;
    for (uint64_t i = 1; i < failures && s < max; i++)
        s *= 2;
    if (strcmp(why->type, "rateLimited") == 0 && s < LIMITED_S && !why->wait_s)
        s = LIMITED_S;
    if (s > max)
        s = max;
    if (why->wait_s > s)
        s = why->wait_s;
    return add_jitter(s);
}

static void write_retry_note(const struct acme_job *p, const struct acme_cert_spec *spec, uint64_t failures,
                             int64_t until, const char *why)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    struct mk_json_writer w = mk_json_writer_to(&text);
    struct acme_error f;
    char what[MARK];
    digest_attempt(p, spec, what);
    mk_json_begin_object(&w);
    mk_json_cstr(mk_json_key(&w, "what"), what);
    mk_json_uint(mk_json_key(&w, "failures"), failures);
    mk_json_int(mk_json_key(&w, "until"), until);
    mk_json_cstr(mk_json_key(&w, "why"), why);
    mk_json_end_object(&w);
    mk_buf_add_char(&text, '\n');
    if (!text.failed &&
        !acme_store_write(ACME_FAILURES, retry_note_name(spec), ".json", mk_buf_str(&text), &f))
        acme_report_log(MK_LOG_WARN, "%s", f.text);
    mk_buf_free(&text);
}

int64_t acme_retry_record_failure(const struct acme_job *p, const struct acme_cert_spec *spec, int64_t now,
                                  const struct acme_error *why)
{
    json_t *o = read_retry_note(p, spec);
    json_int_t before = json_integer_value(json_object_get(o, "failures"));
    uint64_t failures = before > 0 && before < 1000 ? (uint64_t)before + 1 : 1;
    uint64_t pause = pause_after_failures(p, failures, why);
    json_decref(o);
    write_retry_note(p, spec, failures, now + (int64_t)pause, why->text);
    acme_report_log(MK_LOG_ERROR, "%s%s%s; the next attempt is in %" PRIu64 " s", spec ? spec->name : "",
                    spec ? ": " : "", why->text, pause);
    return now + (int64_t)pause;
}

void acme_retry_clear(const struct acme_cert_spec *spec)
{
    acme_store_remove(ACME_FAILURES, retry_note_name(spec), ".json");
}
