/* SPDX-License-Identifier: Apache-2.0 */
/* Messages in the error log, with fields for programs that process the log. */
#ifndef DUDA_LOG_H
#define DUDA_LOG_H

#include <duda/service.h>
#include <duda/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Writes a message to the error log of the virtual host, with the method, target and client address of the
 * request, and its duda_request_id(). With `ErrorLogFormat json`, the line also contains the route.
 *
 *     duda_log(d, MK_LOG_WARN, "the printer is out of paper: %d pages are missing", n_pages);
 */
MK_API void duda_log(struct duda_ctx *d, enum mk_log_level level, const char *fmt, ...) MK_API_PRINTF(3, 4);

/**
 * Writes a message with fields. Pass a constant as the message, and variable data as fields, so that programs
 * can count and filter messages without parsing text. DUDA_LOG_FIELD() takes the name of a field and its
 * value: an integer, bool, double, C string or mk_str.
 *
 *     static int place(struct duda_ctx *d)
 *     {
 *         int64_t id = 17;
 *         duda_log_fields(d, MK_LOG_INFO, "order placed", DUDA_LOG_FIELD("order", id),
 *                         DUDA_LOG_FIELD("country", duda_query(d, "country")));
 *         return 204;
 *     }
 *
 * With `ErrorLogFormat text`, this call writes
 *
 *     GET /place from 192.0.2.7: order placed order=17 country="New Zealand" (request 4c1f0a7be9d2036e)
 *
 * and with `ErrorLogFormat json` an object with the members `time`, `level`, `pid`, `message`, `client`,
 * `method`, `target`, `order`, `country`, `request` and `route`.
 *
 * Values cannot forge lines or fields, because control characters and quotes are escaped or replaced. In
 * JSON, a field with the name of another member, such as `time`, gets the suffix `_`. Fields that exceed the
 * maximum length of a line are omitted.
 */
#ifndef __cplusplus
#define duda_log_fields(d, level, message, ...)                                                              \
    duda_log_field_array(d, level, message, (const struct duda_entry[]){__VA_ARGS__},                        \
                         MK_LEN(((const struct duda_entry[]){__VA_ARGS__})))
/* clang-format off */
/** A field for duda_log_fields(). */
#define DUDA_LOG_FIELD(key, data)                                                                              \
    {                                                                                                          \
        key, _Generic((data),                                                                                \
            bool: duda_value_bool,                                                                           \
            char: duda_value_integer,                                                                        \
            signed char: duda_value_integer,                                                                 \
            short: duda_value_integer,                                                                       \
            int: duda_value_integer,                                                                         \
            long: duda_value_integer,                                                                        \
            long long: duda_value_integer,                                                                   \
            unsigned char: duda_value_unsigned,                                                              \
            unsigned short: duda_value_unsigned,                                                             \
            unsigned: duda_value_unsigned,                                                                   \
            unsigned long: duda_value_unsigned,                                                              \
            unsigned long long: duda_value_unsigned,                                                         \
            float: duda_value_number,                                                                        \
            double: duda_value_number,                                                                       \
            char *: duda_value_cstr,                                                                         \
            const char *: duda_value_cstr,                                                                   \
            mk_str: duda_value_text)(data) \
    }
/* clang-format on */
#endif
/** Writes a message with fields, like duda_log_fields(), from an array. */
MK_API void duda_log_field_array(struct duda_ctx *d, enum mk_log_level level, const char *message,
                                 const struct duda_entry *entries, size_t n);

/** For packages: writes a message about a mistake of the running handler or middleware. The message begins
 * with the name of the function and the file and line of its table entry: "save() in notes.c:40: ". */
MK_API void duda_log_handler(struct duda_ctx *d, enum mk_log_level level, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
/** For packages: under `monkey run`, logs a warning about a probable mistake in the service like
 * duda_log_handler(), once for each subject, such as the member of a schema. Does nothing in production. */
MK_API void duda_log_mistake(struct duda_ctx *d, const void *subject, const char *fmt, ...)
    MK_API_PRINTF(3, 4);

#ifdef __cplusplus
}

inline struct duda_entry duda_log_field(const char *key, mk_str data)
{
    return duda_entry{key, duda_value_text(data)};
}
inline struct duda_entry duda_log_field(const char *key, const char *data)
{
    return duda_entry{key, duda_value_cstr(data)};
}
inline struct duda_entry duda_log_field(const char *key, bool data)
{
    return duda_entry{key, duda_value_bool(data)};
}
inline struct duda_entry duda_log_field(const char *key, double data)
{
    return duda_entry{key, duda_value_number(data)};
}
inline struct duda_entry duda_log_field(const char *key, int data)
{
    return duda_entry{key, duda_value_integer(data)};
}
inline struct duda_entry duda_log_field(const char *key, long data)
{
    return duda_entry{key, duda_value_integer(data)};
}
inline struct duda_entry duda_log_field(const char *key, long long data)
{
    return duda_entry{key, duda_value_integer(data)};
}
inline struct duda_entry duda_log_field(const char *key, unsigned data)
{
    return duda_entry{key, duda_value_unsigned(data)};
}
inline struct duda_entry duda_log_field(const char *key, unsigned long data)
{
    return duda_entry{key, duda_value_unsigned(data)};
}
inline struct duda_entry duda_log_field(const char *key, unsigned long long data)
{
    return duda_entry{key, duda_value_unsigned(data)};
}
#define DUDA_LOG_FIELD(key, data) duda_log_field(key, data)

template <typename... entries>
inline void duda_log_fields(struct duda_ctx *d, enum mk_log_level level, const char *message,
                            const entries &...given)
{
    const struct duda_entry all[] = {given...};
    duda_log_field_array(d, level, message, all, sizeof...(given));
}
#endif

#endif
