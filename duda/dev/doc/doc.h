/* SPDX-License-Identifier: Apache-2.0 */
/* The style sheet and the script of the interactive API documentation page, which renders an OpenAPI
 * document. */
#ifndef DUDA_DEV_DOC_H
#define DUDA_DEV_DOC_H

#include <monkey/str.h>

extern const mk_str dev_doc_style, dev_doc_script;

#endif
