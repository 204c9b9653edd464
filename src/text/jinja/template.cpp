#include "text/jinja/template.h"

#include "base/error.h"
#include "base/utf8.h"
#include "text/jinja/interpreter.h"

namespace stagecraft::jinja {

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  if (source.size() > kMaxBytes) {
    throw Error("{}: expected a template of at most {} bytes, found {}", name_, kMaxBytes,
                source.size());
  }
  check_utf8(name_, source);
  try {
    parsed_ = parse(source);
  } catch (const SyntaxFailure& failure) {
    throw Error("{}: line {}: {}", name_, failure.line, failure.what());
  }
}

MarkedText Template::render(const Variables& variables, const std::tm& now,
                            const Limits& limits) const {
  Runtime runtime(limits, now);
  Interpreter interpreter(runtime);
  try {
    Scope scope;
    for (const auto& [variable, value] : variables(runtime)) scope.set(runtime, variable, value);
    Scope& top = runtime.keep(std::make_unique<Scope>(&scope));
    return interpreter.render(parsed_.block, top);
  } catch (const Failure& failure) {
    throw Error("{}: line {}: {}", name_, interpreter.line(), failure.what());
  }
}

}  // namespace stagecraft::jinja
