from benchbench.cli import main

main()
