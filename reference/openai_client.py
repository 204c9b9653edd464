"""OpenAI's own Python client against ./stage serve, by hand (it needs `pip install openai`):

    ./stage serve --port 8080 &
    python3 reference/openai_client.py http://localhost:8080/v1

Asserts that the client understands each kind of answer, and each error.
"""
import sys

import openai


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

    older = client.completions.create(model=model, prompt=["The sea", "The sky"], max_tokens=5,
                                      temperature=0, logprobs=1)
    assert len(older.choices) == 2 and len(older.choices[0].logprobs.tokens) > 0

    for error, change in ((openai.BadRequestError, {"temperature": -1}),
                          (openai.BadRequestError, {"tools": [{"type": "function"}]}),
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
