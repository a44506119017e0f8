/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

static const struct duda_schema_field message_fields[] = {DUDA_STRING(struct duda_flash_message, text)};
static const struct duda_schema message_schema = DUDA_SCHEMA(struct duda_flash_message, message_fields);
static const struct duda_schema_field error_fields[] = {DUDA_STRING(struct duda_validation_error, message)};
static const struct duda_schema error_schema = DUDA_SCHEMA(struct duda_validation_error, error_fields);

int show_page(struct duda_ctx *d, const char *name, struct duda_value page)
{
    const struct duda_flash_message *messages;
    size_t n;
    mk_str user;
    int e = duda_session_user(d, &user);
    e = e == -ENOENT ? 0 : e;
    e = e ? e : duda_flash_take(d, &messages, &n);
    if (e)
        return e;
    return duda_render(d, name,
                       duda_value_members({"page", page}, {"user", duda_value_text(user)},
                                          {"token", duda_value_text(duda_csrf_token(d))},
                                          {"messages", duda_value_structs(&message_schema, messages, n)}));
}

/* Shows a form with its values; again with status 422 if there are errors. */
int show_form(struct duda_ctx *d, const char *name, const struct duda_schema *schema, const void *form,
              const struct duda_validation_errors *errors)
{
    int e = errors ? duda_status(d, 422) : 0;
    return e ? e
             : show_page(d, name,
                         duda_value_members(
                             {"form", duda_value_struct(schema, form)},
                             {"errors", duda_value_structs(&error_schema, errors ? errors->items : NULL,
                                                           errors ? errors->n : 0)}));
}

/* Redirects to a page, which shows the message. */
int go_to(struct duda_ctx *d, const char *path, const char *message)
{
    int e = duda_flash(d, "", mk_str_from_c(message));
    return e ? e : duda_redirect(d, 303, mk_str_from_c(path));
}

DUDA_SERVICE(tracker, DUDA_BEFORE(duda_csrf_check), DUDA_GROUP("", users, "Users and sessions."),
             DUDA_GROUP("", issues, "The issues."),
             DUDA_BEFORE(duda_auth_session, .data = &require_login, .security = "session"),
             DUDA_GROUP("", changes, "Changes by users."));
