#include "serve/grammar_fields.h"

#include "base/error.h"
#include "text/grammar/json_schema.h"
#include "text/tool_calls.h"

namespace stagecraft {
namespace {

BeyondGrammar beyond(bool strict) { return strict ? BeyondGrammar::Refuse : BeyondGrammar::Ignore; }

const Json& any_object() {
  static const Json schema(R"({"type": "object"})", kRequest);
  return schema;
}

// The schema in {"type": "json_schema", "json_schema": {"name", "schema", "strict"}}, or in
// {"type": "json_object"} with or without a "schema". nullopt if any text is allowed.
std::optional<JsonNode> schema_of_format(JsonNode format, bool& strict) {
  const std::string_view type = type_of(format);
  if (type.empty()) expected("response_format", "an object with a type", format);
  RequestFields fields(format, "response_format");
  fields.ignore({"type"});
  std::optional<JsonNode> schema;
  if (type == "json_schema") {
    const std::optional<JsonNode> named = fields.find("json_schema");
    if (!named || !named->is_object()) expected("response_format.json_schema", "an object", named);
    RequestFields members(*named, "response_format.json_schema");
    members.ignore({"name", "description"});
    strict = members.flag("strict", true);
    schema = members.needed("schema", "a JSON Schema");
    members.refuse_others();
  } else if (type == "json_object") {
    schema = fields.find("schema");
    if (!schema) schema = any_object().root();
  } else if (type != "text") {
    expected("response_format.type", "'text', 'json_object' or 'json_schema'", format.find("type"));
  }
  fields.refuse_others();
  return schema;
}

void use(AnswerForm& request, TextOptions& options, const std::string& field, TokenGrammar rules) {
  request.grammar_field = field;
  options.grammar = std::make_shared<const TokenGrammar>(std::move(rules));
}

// The rules for these tools and an answer without calls; nullopt if they are too large.
std::optional<TokenGrammar> tool_rules(ToolForm form, const ChatTools& tools,
                                       const GivenGrammar& given, TokenGrammars& grammars,
                                       std::string& problem) {
  std::string gbnf;
  try {
    gbnf = tool_gbnf(form, tools.callable,
                     {.forced = tools.forced,
                      .several = tools.several,
                      .text_schema = given.schema,
                      .beyond_text = beyond(given.strict)});
  } catch (const GrammarError& error) {
    problem = error.problem();
    return std::nullopt;
  }
  try {
    return grammars.parse(gbnf, place_of("tools"));
  } catch (const Error& error) {
    problem = json_schema_problem(error);
    return std::nullopt;
  }
}

// The rules for these tools. If they are too large, tools that are not strict may get any object as
// parameters: first those whose own parameters are too large, then all.
TokenGrammar fitting_tool_rules(ToolForm form, const ChatTools& tools, const GivenGrammar& given,
                                TokenGrammars& grammars) {
  std::string problem;
  const auto rules_of = [&](const ChatTools& some) {
    return tool_rules(form, some, given, grammars, problem);
  };
  if (auto rules = rules_of(tools)) return std::move(*rules);
  ChatTools smaller = tools;
  for (Tool& tool : smaller.callable) {
    const ChatTools alone{.array = {}, .callable = {tool}, .forced = true};
    if (rules_of(alone)) continue;
    if (!tool.parameters) continue;  // what is too large is the rest of the grammar
    if (tool.strict) throw Error("{}: {}", tool.parameters->where(), problem);
    tool.parameters = any_object().root();
  }
  if (auto rules = rules_of(smaller)) return std::move(*rules);
  for (Tool& tool : smaller.callable) {
    if (!tool.strict && tool.parameters) tool.parameters = any_object().root();
  }
  if (auto rules = rules_of(smaller)) return std::move(*rules);
  throw Error("{}: {}", place_of("tools"), problem);
}

}  // namespace

GivenGrammar parse_grammar(RequestFields& fields) {
  GivenGrammar given;
  const auto take = [&](const char* key, auto gbnf_of) {
    const std::optional<JsonNode> value = fields.find(key);
    if (!value) return;
    std::string gbnf = reading(key, [&] { return gbnf_of(*value); });
    if (gbnf.empty()) return;
    if (!given.gbnf.empty()) {
      expected(key, fmt::format("only one of '{}' and '{}'", given.field, key), "both");
    }
    given.field = key;
    given.gbnf = std::move(gbnf);
  };
  take("grammar", [](JsonNode value) { return text_of(value, "grammar"); });
  const auto gbnf_of_schema = [&](std::optional<JsonNode> found) {
    if (found) given.schema = found;
    return found ? json_schema_gbnf(*found, beyond(given.strict)) : "";
  };
  take("json_schema", gbnf_of_schema);
  take("response_format",
       [&](JsonNode value) { return gbnf_of_schema(schema_of_format(value, given.strict)); });
  return given;
}

void set_grammar(AnswerForm& request, TextOptions& options, const GivenGrammar& given,
                 TokenGrammars& grammars) {
  if (given.gbnf.empty()) return;
  use(request, options, given.field, reading(given.field, [&] {
        try {
          return grammars.parse(given.gbnf, place_of(given.field));
        } catch (const Error& error) {
          if (!given.schema) throw;
          throw Error("{}: {}", given.schema->where(), json_schema_problem(error));
        }
      }));
}

void set_tool_grammar(AnswerForm& request, TextOptions& options, const GivenGrammar& given,
                      const ChatTools& tools, TokenGrammars& grammars) {
  const ToolForm form = request.tool_form;
  if (!given.gbnf.empty() && !given.schema) {
    refuse_field("tools", "not supported together with 'grammar'");
  }
  if (given.schema && form == ToolForm::Bare) {
    refuse_field("tools",
                 "not supported together with a schema of the answer: with the chat template of "
                 "this model, calls of tools are JSON, too");
  }
  set_grammar(request, options, given, grammars);  // refuses a schema that alone is too large
  use(request, options, "tools",
      reading("tools", [&] { return fitting_tool_rules(form, tools, given, grammars); }));
}

}  // namespace stagecraft
