#include "serve/response_writer.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace stagecraft {
namespace {

constexpr std::string_view kInProgress = "in_progress", kCompleted = "completed",
                           kIncomplete = "incomplete";

nlohmann::json message_item(const std::string& id, const std::string& text,
                            std::string_view status) {
  nlohmann::json content = nlohmann::json::array();
  if (status != kInProgress)
    content.push_back({{"type", "output_text"},
                       {"text", text},
                       {"annotations", nlohmann::json::array()},
                       {"logprobs", nlohmann::json::array()}});
  return {{"type", "message"},
          {"id", id},
          {"status", status},
          {"role", "assistant"},
          {"content", std::move(content)}};
}

nlohmann::json call_item(const std::string& id, const ToolCall& call, bool is_done) {
  return {{"type", "function_call"},
          {"id", "fc_" + id},
          {"call_id", "call_" + id},
          {"name", call.name},
          {"arguments", is_done ? call.arguments : ""},
          {"status", is_done ? kCompleted : kInProgress}};
}

}  // namespace

// Builds the JSON objects of an answer, and the events of a stream.
struct ResponseWriter::Builder {
  ResponseWriter& writer;
  std::string said;

  std::string item_id() const {
    return fmt::format("{}_{}", writer.options_.id, writer.items_.size());
  }

  void say(const char* type, nlohmann::json event) {
    if (!writer.options_.stream) return;
    event["type"] = type;
    event["sequence_number"] = writer.sequence_++;
    said += fmt::format("event: {}\ndata: {}\n\n", type, json_text(event));
  }
  // Adds an event about the item that is being written.
  void say_of_item(const char* type, nlohmann::json event) {
    event["output_index"] = writer.items_.size();
    say(type, std::move(event));
  }

  nlohmann::json response(const char* status) const {
    const Options& options = writer.options_;
    nlohmann::json json = json_value(options.echo);
    json.update({{"id", "resp_" + options.id},
                 {"object", "response"},
                 {"created_at", options.created},
                 {"status", status},
                 {"model", options.model},
                 {"error", nullptr},
                 {"incomplete_details", nullptr},
                 {"usage", nullptr},
                 {"output", nlohmann::json::array()}});
    for (const std::string& item : writer.items_) json["output"].push_back(json_value(item));
    if (!writer.ended_) return json;
    const TextEnd& end = writer.end_;
    json["usage"] = {{"input_tokens", end.prompt_tokens},
                     {"input_tokens_details", {{"cached_tokens", end.cached_tokens}}},
                     {"output_tokens", end.new_tokens},
                     {"output_tokens_details", {{"reasoning_tokens", 0}}},
                     {"total_tokens", end.prompt_tokens + end.new_tokens}};
    if (status == std::string_view("incomplete")) {
      json["incomplete_details"] = {{"reason", "max_output_tokens"}};
    }
    if (const auto error = writer.error()) {
      // "invalid_prompt" is the one code of OpenAI's list that stands for a wrong request.
      json["error"] = {{"code", error->status() == 400 ? "invalid_prompt" : "server_error"},
                       {"message", error->what()}};
    }
    return json;
  }
};

ResponseWriter::ResponseWriter(const Options& options)
    : options_(options), reader_(options.tool_form) {}

std::optional<ApiError> ResponseWriter::error() const {
  if (end_.error.empty()) return std::nullopt;
  return error_of(end_, options_.grammar_field);
}

std::string ResponseWriter::begin() {
  Builder builder{*this, {}};
  builder.say("response.created", {{"response", builder.response("in_progress")}});
  builder.say("response.in_progress", {{"response", builder.response("in_progress")}});
  return builder.said;
}

std::string ResponseWriter::add(std::size_t, const TextEvent& event) {
  Builder builder{*this, {}};
  take(reader_.push(event.piece), builder);
  if (!event.end) return builder.said;
  take(reader_.finish(), builder);
  end_ = *event.end;
  ended_ = true;
  close_text(builder, !end_.error.empty() || is_cut(end_.reason) ? kIncomplete : kCompleted);
  return builder.said;
}

void ResponseWriter::take(const ToolCallReader::Found& found, Builder& builder) {
  if (!found.text.empty()) {
    const std::string id = "msg_" + builder.item_id();
    if (!in_text_) {
      in_text_ = true;
      builder.say_of_item("response.output_item.added",
                          {{"item", message_item(id, "", kInProgress)}});
      builder.say_of_item("response.content_part.added",
                          {{"item_id", id},
                           {"content_index", 0},
                           {"part", message_item(id, "", kCompleted)["content"][0]}});
    }
    text_ += found.text;
    builder.say_of_item("response.output_text.delta", {{"item_id", id},
                                                       {"content_index", 0},
                                                       {"delta", found.text},
                                                       {"logprobs", nlohmann::json::array()}});
  }
  for (const ToolCall& call : found.calls) {
    close_text(builder, kCompleted);
    const std::string id = builder.item_id();
    builder.say_of_item("response.output_item.added", {{"item", call_item(id, call, false)}});
    builder.say_of_item("response.function_call_arguments.delta",
                        {{"item_id", "fc_" + id}, {"delta", call.arguments}});
    builder.say_of_item(
        "response.function_call_arguments.done",
        {{"item_id", "fc_" + id}, {"name", call.name}, {"arguments", call.arguments}});
    const nlohmann::json item = call_item(id, call, true);
    builder.say_of_item("response.output_item.done", {{"item", item}});
    items_.push_back(json_text(item));
  }
}

void ResponseWriter::close_text(Builder& builder, std::string_view status) {
  if (!in_text_) return;
  in_text_ = false;
  const std::string id = "msg_" + builder.item_id();
  const nlohmann::json item = message_item(id, text_, status);
  builder.say_of_item("response.output_text.done", {{"item_id", id},
                                                    {"content_index", 0},
                                                    {"text", text_},
                                                    {"logprobs", nlohmann::json::array()}});
  builder.say_of_item("response.content_part.done",
                      {{"item_id", id}, {"content_index", 0}, {"part", item["content"][0]}});
  builder.say_of_item("response.output_item.done", {{"item", item}});
  items_.push_back(json_text(item));
  text_.clear();
}

std::string ResponseWriter::finish() {
  Builder builder{*this, {}};
  const char* status = !end_.error.empty()   ? "failed"
                       : is_cut(end_.reason) ? "incomplete"
                                             : "completed";
  const nlohmann::json whole = builder.response(status);
  if (!options_.stream) return json_text(whole) + "\n";
  builder.say(fmt::format("response.{}", status).c_str(), {{"response", whole}});
  return builder.said;
}

}  // namespace stagecraft
