# The commands of the book. Without make: README.md has three as plain commands;
# the others are as plain: a module to prepare with, and a module to run.

PYTHON ?= python3
SAMPLE ?= 60
VENV = .venv/bin/python

.NOTPARALLEL:
.PHONY: help book test offline lab serve notebooks accept looks experiments bench bench-gpu doctor-audit clinic mutants hostile corruptions retrain format clean

help:
	@echo "make book       build the site into _build/html"
	@echo "make test       verify all that a reader sees"
	@echo "make offline    the site as an archive, the book as a PDF"
	@echo "make lab        open the notebooks in JupyterLab"
	@echo "make serve      build the site and serve it on this machine"
	@echo "make notebooks  execute the notebooks and write their outputs"
	@echo "make accept     show what was edited that no machine computes; accept it"
	@echo "make looks      look at the pages that changed; write what was seen"
	@echo "make experiments  run them again, and write what came out"
	@echo "make bench      measure the mechanisms beside PyTorch's"
	@echo "make bench-gpu  measure attention on a CUDA GPU, into its ledger"
	@echo "make doctor-audit  let the doctor examine code that is sound"
	@echo "make clinic     let it examine strangers, sound and ill"
	@echo "make mutants    plant mistakes that the tests must see"
	@echo "make hostile    try the package with inputs nobody meant it for"
	@echo "make corruptions  corrupt copies of the book; SAMPLE=60 of each kind"
	@echo "make retrain    train an experiment with seeds that are not committed"
	@echo "make format     put code and notebooks into the house style"
	@echo "make clean      remove what was built; .venv stays"

book:
	@$(PYTHON) -m tools.setup.prepare book
	@$(VENV) -m tools.build.website

test:
	@$(PYTHON) -m tools.setup.prepare test
	@$(VENV) -m tools.verify.stages

offline:
	@$(PYTHON) -m tools.setup.prepare test
	@$(VENV) -m tools.build.offline
	@$(VENV) -m tools.verify.offline
	@$(VENV) -m tools.verify.taken

lab:
	@$(PYTHON) -m tools.setup.prepare lab
	@$(VENV) -m jupyter lab book

serve: book
	@echo "http://127.0.0.1:8000/book/intro.html (end with Ctrl-C)"
	@$(VENV) -m http.server 8000 --bind 127.0.0.1 --directory _build/html

notebooks:
	@$(PYTHON) -m tools.setup.prepare lab
	@$(VENV) -m tools.build.notebooks
	@$(VENV) -m tools.build.answers

accept:
	@$(PYTHON) -m tools.setup.prepare lab
	@$(VENV) -m tools.build.accept

looks:
	@$(PYTHON) -m tools.setup.prepare test
	@$(VENV) -m tools.verify.looks

experiments:
	@$(PYTHON) -m tools.setup.prepare test
	@$(VENV) -m tools.measure.experiments

bench:
	@$(PYTHON) -m tools.setup.prepare test
	@$(VENV) -m tools.measure.bench

bench-gpu:
	@$(PYTHON) -m tools.setup.prepare test
	@$(VENV) -m tools.measure.gpu

doctor-audit:
	@$(PYTHON) -m tools.setup.prepare test
	@$(VENV) -m tools.measure.doctor.audit

clinic:
	@$(PYTHON) -m tools.setup.prepare test
	@$(VENV) -m tools.measure.clinic

mutants:
	@$(PYTHON) -m tools.setup.prepare test
	@$(VENV) -m tools.measure.mutants

hostile:
	@$(PYTHON) -m tools.setup.prepare test
	@$(VENV) -m tools.measure.hostile

corruptions:
	@$(PYTHON) -m tools.setup.prepare test
	@$(VENV) -m tools.measure.corruptions --sample $(SAMPLE)

retrain:
	@$(PYTHON) -m tools.setup.prepare test
	@$(VENV) -m tools.measure.retrain

format:
	@$(PYTHON) -m tools.setup.prepare lab
	@$(VENV) -m ruff check --fix
	@$(VENV) -m ruff format

clean:
	rm -rf _build .pytest_cache .ruff_cache .mypy_cache .hypothesis
