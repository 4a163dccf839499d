"""Write the page of every experiment, and the numbers and tables of records in the documents.

python -m experiments.pages
"""

from experiments.pages.documents import written

if __name__ == "__main__":
    for path, text in written().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
