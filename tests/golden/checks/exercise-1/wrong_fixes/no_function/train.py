if __name__ == "__main__":
    print("doubled", 0)
