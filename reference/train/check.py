"""Checks each folder: transformers opens it, its logits equal those of llama.py, and it generates."""

import sys

import torch

from llama import read_folder


def main():
    from transformers import AutoModelForCausalLM, AutoTokenizer
    torch.set_num_threads(1)
    for folder in sys.argv[1:]:
        t = AutoTokenizer.from_pretrained(folder)
        m = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        if t.chat_template:
            ids = t.apply_chat_template([{"role": "user", "content": "Hello!"}],
                                        add_generation_prompt=True, return_tensors="pt",
                                        return_dict=True)["input_ids"]
        else:
            ids = t("Once upon a time", return_tensors="pt")["input_ids"]
        with torch.no_grad():
            theirs, ours = m(ids).logits, read_folder(folder)(ids)
        difference = ((theirs - ours).abs().max() / theirs.abs().max()).item()
        out = m.generate(ids, max_new_tokens=40, do_sample=False)
        print(f"{folder}: {type(m).__name__}, {m.num_parameters():,} parameters, "
              f"logits differ by {difference:.1e} of the largest")
        print(f"  ids {ids[0].tolist()}\n  {t.decode(out[0])!r}")
        assert difference < 5e-5, difference


if __name__ == "__main__":
    main()
