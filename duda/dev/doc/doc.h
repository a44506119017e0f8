/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the interactive API documentation page, which renders an OpenAPI document. */
#ifndef DUDA_DEV_DOC_H
#define DUDA_DEV_DOC_H

#include <monkey/str.h>

extern const mk_str dev_doc_style, dev_doc_script;
extern const mk_str dev_doc_style_hash, dev_doc_script_hash; /* for Content-Security-Policy */
extern const mk_str dev_doc_body;                            /* with @TITLE@, @VERSION@ and @DESCRIPTION@ */

#endif
