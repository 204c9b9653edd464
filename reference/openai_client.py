"""Runs OpenAI's own Python client against ./stage serve, by hand (it needs `pip install openai`):

    ./stage serve --port 8080 --chat-template reference/chat_templates/qwen-2.5.jinja &
    python3 reference/openai_client.py http://localhost:8080/v1

Asserts that the client understands each kind of answer, and each error. (The template supports
calls of tools.)
"""
import json
import sys

import openai


SCHEMA = {"type": "object", "required": ["place"], "additionalProperties": False,
          "properties": {"place": {"enum": ["Bern", "Rome"]},
                         "days": {"type": "integer", "minimum": 1, "maximum": 9},
                         "sure": {"type": "number", "minimum": 0, "maximum": 1}}}


def check_place(text):
    found = json.loads(text)
    assert found["place"] in ("Bern", "Rome") and 1 <= found.get("days", 1) <= 9, found
    assert 0 <= found.get("sure", 0) <= 1, found


def check_structure(client, same):
    made = client.chat.completions.create(**{**same, "max_tokens": 200}, response_format={
        "type": "json_schema", "json_schema": {"name": "place", "strict": True, "schema": SCHEMA}})
    check_place(made.choices[0].message.content)


def check_tools(client, same):
    asked = {**same, "max_tokens": 200, "tool_choice": "required", "tools": [
        {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]}
    message = client.chat.completions.create(**asked).choices[0].message
    for call in message.tool_calls:
        assert call.type == "function" and call.function.name == "weather"
        check_place(call.function.arguments)
    with client.chat.completions.stream(**asked) as stream:
        streamed = stream.get_final_completion().choices[0].message
    assert ([call.function.arguments for call in streamed.tool_calls] ==
            [call.function.arguments for call in message.tool_calls])
    either = client.chat.completions.create(
        **{**asked, "tool_choice": "auto"}, response_format={"type": "json_object"})
    if not either.choices[0].message.tool_calls and either.choices[0].finish_reason == "stop":
        json.loads(either.choices[0].message.content)
    results = [{"role": "tool", "tool_call_id": call.id, "content": "sunny"}
               for call in message.tool_calls]
    client.chat.completions.create(**{**same, "messages": [
        *same["messages"], message.to_dict(), *results]})


def check_responses(client, model):
    same = {"model": model, "input": "Hello, who are you?", "temperature": 0,
            "max_output_tokens": 60}
    whole = client.responses.create(**same)
    assert whole.output_text and whole.status in ("completed", "incomplete")
    assert whole.usage.total_tokens == whole.usage.input_tokens + whole.usage.output_tokens
    with client.responses.stream(**same) as stream:
        events = [event.type for event in stream]
        assert stream.get_final_response().output_text == whole.output_text
    assert events[0] == "response.created" and events[-1] == f"response.{whole.status}", events
    formed = client.responses.create(**{**same, "max_output_tokens": 200}, text={
        "format": {"type": "json_schema", "name": "place", "strict": True, "schema": SCHEMA}})
    check_place(formed.output_text)
    tools = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": True}]
    called = client.responses.create(**{**same, "max_output_tokens": 200}, tools=tools,
                                     tool_choice="required", parallel_tool_calls=False)
    [call] = called.output
    assert (call.type, call.name) == ("function_call", "weather"), call
    check_place(call.arguments)
    client.responses.create(**{**same, "input": [
        {"role": "user", "content": "The weather?"}, call.to_dict(),
        {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]})
    try:
        client.responses.create(**same, previous_response_id="resp_1")
    except openai.BadRequestError as found:
        assert found.param == "previous_response_id", found
    else:
        raise AssertionError("previous_response_id was accepted")


def main():
    base = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8080/v1"
    client = openai.OpenAI(base_url=base, api_key="any", max_retries=0)
    model = client.models.list().data[0].id
    messages = [{"role": "user", "content": "Hello, who are you?"}]
    same = {"model": model, "messages": messages, "seed": 7, "max_tokens": 40}

    whole = client.chat.completions.create(**same, logprobs=True, top_logprobs=2)
    choice = whole.choices[0]
    assert choice.message.role == "assistant" and choice.finish_reason in ("stop", "length")
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    assert whole.usage.prompt_tokens_details.cached_tokens >= 0
    assert all(len(entry.top_logprobs) == 2 for entry in choice.logprobs.content)
    spelled = b"".join(bytes(entry.bytes) for entry in choice.logprobs.content).decode()
    assert spelled == choice.message.content, (spelled, choice.message.content)

    streamed, usage = "", None
    for chunk in client.chat.completions.create(**same, stream=True,
                                                stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        streamed += "".join(one.delta.content or "" for one in chunk.choices)
    assert streamed == choice.message.content, (streamed, choice.message.content)
    assert usage.completion_tokens == whole.usage.completion_tokens

    several = client.chat.completions.create(**same, n=3, stop=["."], temperature=1.2,
                                             extra_body={"top_k": 20, "repeat_penalty": 1.1})
    assert [one.index for one in several.choices] == [0, 1, 2]
    assert not any("." in one.message.content for one in several.choices)

    continued = client.chat.completions.create(**{**same, "messages": [
        *messages, {"role": "assistant", "content": choice.message.content[:3]}]})
    assert continued.usage.prompt_tokens > whole.usage.prompt_tokens

    older = client.completions.create(model=model, prompt=["The sea", "The sky"], max_tokens=5,
                                      temperature=0, logprobs=1)
    assert len(older.choices) == 2 and len(older.choices[0].logprobs.tokens) > 0

    check_structure(client, same)
    check_tools(client, same)
    check_responses(client, model)

    for error, change in ((openai.BadRequestError, {"temperature": -1}),
                          (openai.BadRequestError, {"tool_choice": "required"}),
                          (openai.BadRequestError, {"reasoning_effort": "low"}),
                          (openai.NotFoundError, {"model": "another"})):
        try:
            client.chat.completions.create(**{**same, **change})
        except error as found:
            assert found.body["message"].startswith("request: "), found
            assert found.param == next(iter(change)), found
        else:
            raise AssertionError(f"{change} was answered")
    print(f"openai {openai.__version__}: {choice.message.content!r}; all is understood")


if __name__ == "__main__":
    main()
