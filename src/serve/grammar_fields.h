#pragma once

#include <optional>
#include <string>

#include "serve/answer.h"
#include "serve/chat_fields.h"
#include "serve/request_fields.h"
#include "serve/text_request.h"
#include "text/grammar/token_grammar.h"

namespace stagecraft {

// The fields that make an answer follow a grammar. The functions throw ApiError.

// The grammar that the text must follow.
struct GivenGrammar {
  std::string field, gbnf;         // "": any text is allowed
  std::optional<JsonNode> schema;  // what the grammar is made of, if it is
  bool strict = true;              // whether the grammar must express all of the schema
};

// "grammar", "json_schema" or "response_format"; at most one of them is allowed.
GivenGrammar parse_grammar(RequestFields& fields);

void set_grammar(AnswerForm& request, TextOptions& options, const GivenGrammar& given,
                 TokenGrammars& grammars);
// The grammar of an answer that may call tools. given: the grammar of an answer without calls.
// request.tool_form must be set. If the parameters of tools that are not strict make the grammar
// too large, it allows any object instead.
void set_tool_grammar(AnswerForm& request, TextOptions& options, const GivenGrammar& given,
                      const ChatTools& tools, TokenGrammars& grammars);

}  // namespace stagecraft
