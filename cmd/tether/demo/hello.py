def main()
    print("hello from python")


main()
