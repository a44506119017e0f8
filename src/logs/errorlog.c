/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/errorlog.h"

#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "os/fd.h"

static void append_time(struct mk_buf *line)
{
    char text[32];
    struct tm t;
    time_t now = (time_t)mk_clock_unix();
    localtime_r(&now, &t);
    size_t len = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &t);
    mk_buf_add(line, mk_str_of(text, len));
}

enum {
    HEAD = 64,       /* maximum length of timestamp, level and process ID */
    JSON_HEAD = 160, /* the same in JSON */
    JSON_BYTES = 6,  /* maximum length of a byte in a JSON string: "\\u0000" */
};

static bool is_json_log(const struct mk_logfile *file)
{
    return file && file->is_json;
}

size_t mk_errorlog_line_size(const struct mk_logfile *file, mk_str text, const struct mk_log_fields *fields)
{
    if (!is_json_log(file))
        return text.len + HEAD;
    return text.len * JSON_BYTES + (fields ? fields->json.len : 0) + JSON_HEAD;
}

static void format_json_line(enum mk_log_level level, mk_str text, const struct mk_log_fields *fields,
                             struct mk_buf *out)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_begin_object(&w);
    mk_json_begin_string(mk_json_key(&w, "time"));
    append_time(out);
    mk_json_end_string(&w);
    mk_json_cstr(mk_json_key(&w, "level"), mk_log_level_names[level]);
    mk_json_int(mk_json_key(&w, "pid"), (int)getpid());
    mk_json_string(mk_json_key(&w, "message"), text);
    if (fields && fields->json.len) {
        mk_buf_add_char(out, ',');
        mk_buf_add(out, fields->json);
    }
    mk_json_end_object(&w);
    mk_buf_add_char(out, '\n');
}

void mk_errorlog_format_line(const struct mk_logfile *file, enum mk_log_level level, mk_str text,
                             const struct mk_log_fields *fields, struct mk_buf *out)
{
    if (is_json_log(file)) {
        format_json_line(level, text, fields, out);
        return;
    }
    if (!file || !file->has_priorities) {
        append_time(out);
        mk_buf_addf(out, " [%s] %d: ", mk_log_level_names[level], (int)getpid());
    }
    mk_buf_add(out, text);
    mk_buf_add_char(out, '\n');
}

enum { LINE_MAX_SIZE = 1280, JSON_MAX_SIZE = 4096 };

/* Writes a message. False: the line was lost. */
static bool write_message(struct mk_errorlog *e, enum mk_log_level level, mk_str text)
{
    char buf[JSON_MAX_SIZE];
    struct mk_buf line = mk_buf_fixed(buf, sizeof buf);
    bool has_file = e->writer->file && e->writer->file->fd >= 0;
    if (e->is_silent && !has_file)
        return true;
    mk_errorlog_format_line(e->writer->file, level, text, e->log.fields, &line);
    if (line.failed) { /* too long in JSON: omits the fields and the end of the message */
        mk_buf_clear(&line);
        text = mk_str_first(text, (JSON_MAX_SIZE - JSON_HEAD) / JSON_BYTES);
        mk_errorlog_format_line(e->writer->file, level, text, NULL, &line);
    }
    if (has_file)
        return mk_logwriter_write_now(e->writer, level, mk_buf_str(&line));
    return mk_fd_write_all(STDERR_FILENO, line.p, line.len) == 0;
}

/* Reports how many lines the log has lost. If the log is still not writable, they remain counted as lost. */
static void report_lost_lines(struct mk_errorlog *e)
{
    char buf[160];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    uint64_t n = e->writer->lost;
    mk_buf_addf(&text, "%llu lines of this log were lost: %s", (unsigned long long)n,
                mk_logwriter_loss_reason(e->writer));
    e->writer->lost = 0;
    if (!write_message(e, MK_LOG_ERROR, mk_buf_str(&text)))
        e->writer->lost = n + (e->writer->lost ? e->writer->lost - 1 : 0); /* the count excludes this
                                                                              message */
}

static void write_line(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    struct mk_errorlog *e = MK_CONTAINER(log, struct mk_errorlog, log);
    if (e->writer->lost)
        report_lost_lines(e);
    if (e->on_message)
        e->on_message(e->on_message_ctx, level, text);
    (void)write_message(e, level, text);
}

void mk_errorlog_report_lost(struct mk_log *log)
{
    struct mk_errorlog *e = MK_CONTAINER(log, struct mk_errorlog, log);
    if (log->write == write_line && e->writer->lost)
        report_lost_lines(e);
}

mk_err mk_errorlog_set_writer(struct mk_log *log, struct mk_logwriter *writer)
{
    struct mk_errorlog *e = MK_CONTAINER(log, struct mk_errorlog, log);
    if (log->write != write_line)
        return 0;
    log->is_json = is_json_log(writer ? writer->file : e->own.file);
    uint64_t lost = e->writer->lost;
    mk_err error = e->writer->lost_by;
    e->writer->lost = 0;
    e->writer = writer ? writer : &e->own;
    e->writer->lost += lost;
    e->writer->lost_by = lost ? error : e->writer->lost_by;
    return mk_buf_reserve(&e->writer->lines, LINE_MAX_SIZE) ? 0 : -ENOMEM;
}

mk_err mk_errorlog_init(struct mk_errorlog *e, enum mk_log_level level, const struct mk_logfile *file)
{
    *e = (struct mk_errorlog){.log = {.level = level, .write = write_line}, .writer = &e->own};
    mk_logwriter_init(&e->own, file);
    return mk_errorlog_set_writer(&e->log, NULL);
}

void mk_errorlog_switch(struct mk_errorlog *e, enum mk_log_level level, const struct mk_logfile *file)
{
    e->log.level = level;
    e->log.is_json = is_json_log(file);
    mk_logwriter_switch_file(&e->own, file);
}

void mk_errorlog_fini(struct mk_errorlog *e)
{
    mk_logwriter_fini(&e->own);
}
