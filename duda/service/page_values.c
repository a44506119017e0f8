/* SPDX-License-Identifier: Apache-2.0 */
#include "service/page_values.h"

#include <errno.h>

enum { MEMBERS_MAX = 3 };

/* Creates a list of `n` maps, whose members the caller sets: those of the i-th map begin at
 * (*members)[i * n_members]. Returns null if memory is exhausted. */
static struct duda_value create_list(struct duda_ctx *d, size_t n, size_t n_members,
                                     struct duda_entry **members)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_value *items = mk_allocator_zalloc(&memory, n, sizeof *items);
    *members = mk_allocator_zalloc(&memory, n * n_members, sizeof **members);
    if (!items || !*members)
        return duda_value_null();
    for (size_t i = 0; i < n; i++)
        items[i] = duda_value_map(*members + i * n_members, n_members);
    return duda_value_list(items, n);
}

static int find_user(struct duda_ctx *d, struct duda_value *out)
{
    mk_str user;
    int e = duda_session_user(d, &user);
    *out = duda_value_text(user);
    return e;
}

static int take_flash(struct duda_page_values *values)
{
    const struct duda_flash_message *messages;
    struct duda_entry *members;
    size_t n;
    int e = duda_flash_take(values->d, &messages, &n);
    if (e)
        return e;
    values->flash = create_list(values->d, n, 2, &members);
    if (values->flash.kind == DUDA_VALUE_NULL)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        members[2 * i] = (struct duda_entry){"category", duda_value_cstr(messages[i].category)};
        members[2 * i + 1] = (struct duda_entry){"text", duda_value_text(messages[i].text)};
    }
    values->has_flash = true;
    return 0;
}

static int find_flash(struct duda_page_values *values, struct duda_value *out)
{
    int e = values->has_flash ? 0 : take_flash(values);
    *out = values->flash;
    return e;
}

static const struct duda_validation_errors *form_errors(const struct duda_ctx *d)
{
    static const struct duda_validation_errors none;
    return d->extras && d->extras->form_errors ? d->extras->form_errors : &none;
}

static int list_errors(struct duda_ctx *d, struct duda_value *out)
{
    const struct duda_validation_errors *errors = form_errors(d);
    struct duda_entry *members;
    *out = create_list(d, errors->n, MEMBERS_MAX, &members);
    if (out->kind == DUDA_VALUE_NULL)
        return -ENOMEM;
    for (size_t i = 0; i < errors->n; i++) {
        const struct duda_validation_error *error = &errors->items[i];
        struct duda_entry *of_error = &members[i * MEMBERS_MAX];
        of_error[0] = (struct duda_entry){"message", duda_value_text(error->message)};
        of_error[1] = (struct duda_entry){"pointer", duda_value_text(error->pointer)};
        of_error[2] = (struct duda_entry){"code", duda_value_cstr(error->code)};
    }
    return 0;
}

/* Does the rest of a JSON pointer lead to an element of a list, "/0", or into an element, "/0/street"? */
static bool is_in_element(mk_str rest)
{
    size_t n = 1;
    while (n < rest.len && mk_char_is_digit(rest.p[n]))
        n++;
    return n > 1 && rest.p[0] == '/' && (n == rest.len || rest.p[n] == '/');
}

/* Compares the name of a field, "shop.street", with a JSON pointer, "/shop/street", or with that of an element
 * of the field, "/shop/street/0". */
static bool names_field(mk_str name, mk_str pointer)
{
    while (name.p) {
        mk_str part = mk_str_cut(&name, '.');
        if (!mk_str_starts(pointer, MK_STR("/")) || !mk_str_starts(mk_str_skip(pointer, 1), part))
            return false;
        pointer = mk_str_skip(pointer, 1 + part.len);
    }
    return pointer.len == 0 || is_in_element(pointer);
}

static int find_field_error(struct duda_ctx *d, mk_str field, struct duda_value *out)
{
    const struct duda_validation_errors *errors = form_errors(d);
    *out = duda_value_null();
    for (size_t i = 0; i < errors->n; i++)
        if (names_field(field, errors->items[i].pointer)) {
            *out = duda_value_text(errors->items[i].message);
            return 0;
        }
    return 0;
}

static bool is_page_value(mk_str name)
{
    return mk_str_eq(name, MK_STR("user")) || mk_str_eq(name, MK_STR("flash")) ||
           mk_str_eq(name, MK_STR("csrf_token"));
}

int duda_page_values_find(void *ctx, mk_str name, struct duda_value *out)
{
    struct duda_page_values *values = ctx;
    mk_str first = mk_str_cut(&name, '.');
    if (mk_str_eq(first, MK_STR("errors")))
        return name.p ? find_field_error(values->d, name, out) : list_errors(values->d, out);
    if (name.p)
        return -ENOENT;
    *out = duda_value_null();
    if (!values->d->request)
        return is_page_value(first) ? 0 : -ENOENT;
    if (mk_str_eq(first, MK_STR("user")))
        return find_user(values->d, out);
    if (mk_str_eq(first, MK_STR("flash")))
        return find_flash(values, out);
    if (!mk_str_eq(first, MK_STR("csrf_token")))
        return -ENOENT;
    *out = duda_value_text(duda_csrf_token(values->d));
    return 0;
}
